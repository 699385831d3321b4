<?php

declare(strict_types=1);

namespace Drupal\Core\Site;

/** Double of Drupal's settings: one object per process, with static access. */
final class Settings
{
    private static self $instance;

    /** @param array<string, mixed> $settings */
    public function __construct(private readonly array $settings)
    {
        self::$instance = $this;
    }

    public static function get(string $name, mixed $default = null): mixed
    {
        return self::$instance->settings[$name] ?? $default;
    }

    public static function getHashSalt(): string
    {
        return self::get('hash_salt');
    }
}
