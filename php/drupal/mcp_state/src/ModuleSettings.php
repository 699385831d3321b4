<?php

declare(strict_types=1);

namespace Drupal\mcp_state;

use Drupal\Core\Site\Settings;
use McpState\Exception\InvalidArgument;

/**
 * `$settings['mcp_state']` of settings.php. All keys are optional:
 *
 * - `dsn`: the store. The default is `shm://drupal-…`, with a name from the site's hash salt and path, so that no two
 *   sites share a store. Copies of a site on one machine have the same salt: give each copy a name.
 * - `ttl`, `lease`: milliseconds, as for {@see \McpState\Sdk\SessionManager}.
 * - `max_waiting`: how many requests may wait for a client at once. Choose less than the number of PHP processes.
 * - `bind_user`: whether a session belongs to the Drupal user who created it. The default is TRUE.
 * - `scope`: how PHP serves requests. NULL (the default): one exchange for each PHP request (php-fpm, mod_php). On the
 *   command line, where `drush mcp:server` serves one client on stdio, the module then replaces nothing. 'worker': one
 *   exchange after another in one process (FrankenPHP, RoadRunner).
 */
final class ModuleSettings
{
    private const KEYS = ['dsn', 'ttl', 'lease', 'max_waiting', 'bind_user', 'scope'];

    /**
     * @var \WeakMap<self, array<string, mixed>>|null outside of the object, so that no dump shows the DSN's password
     */
    private static ?\WeakMap $values = null;

    public function __construct(
        Settings $settings,
        private readonly string $sitePath,
        private readonly string $sapi = \PHP_SAPI,
    ) {
        $values = $settings->get('mcp_state', []);
        self::$values ??= new \WeakMap();
        self::$values[$this] = \is_array($values) ? $values : ['dsn' => $values];
    }

    /** @throws InvalidArgument if settings.php has an unknown key, so that a typing error does not go unnoticed */
    public function get(string $key, mixed $default = null): mixed
    {
        $values = self::$values[$this] ?? [];
        $unknown = \array_diff(\array_keys($values), self::KEYS);

        if ($unknown !== []) {
            throw new InvalidArgument(
                "\$settings['mcp_state'] has no key \"" . \implode('", "', $unknown) . '": the keys are '
                . \implode(', ', self::KEYS)
            );
        }

        return $values[$key] ?? $default;
    }

    public function dsn(): string
    {
        return $this->get('dsn')
            ?? 'shm://drupal-' . \substr(\hash('sha256', Settings::getHashSalt() . "\0" . $this->sitePath), 0, 12);
    }

    /** Tells whether the server of this process uses the manager. */
    public function isActive(): bool
    {
        return $this->get('scope') !== null || $this->sapi !== 'cli';
    }
}
