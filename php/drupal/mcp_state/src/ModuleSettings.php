<?php

declare(strict_types=1);

namespace Drupal\mcp_state;

use Drupal\Core\Site\Settings;
use McpState\Exception\InvalidArgument;

/**
 * `$settings['mcp_state']` of settings.php. All keys are optional:
 *
 * - `dsn`: the store. By default `shm://drupal-…`, a name made from the site's hash salt and path, so that no two sites
 *   share one. Copies of a site on one machine have one salt: give each a name.
 * - `ttl`, `lease`: milliseconds, as {@see \McpState\Sdk\SessionManager} takes them.
 * - `max_waiting`: how many requests may wait for a client at once; keep it below the number of PHP processes.
 * - `bind_user`: whether a session belongs to the Drupal user who opened it. TRUE by default.
 * - `scope`: how PHP serves requests. NULL (the default): one for each PHP request (php-fpm, mod_php), and nothing is
 *   replaced on the command line, where `drush mcp:server` speaks stdio to one client. 'worker': one after another
 *   (FrankenPHP, RoadRunner).
 */
final class ModuleSettings
{
    private const KEYS = ['dsn', 'ttl', 'lease', 'max_waiting', 'bind_user', 'scope'];

    /** @var \WeakMap<self, array<string, mixed>>|null beside the object, so that no dump of it shows the DSN's password */
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

    /** @throws InvalidArgument for a key that does not exist: a misspelt one must not go unnoticed */
    public function get(string $key, mixed $default = null): mixed
    {
        $values = self::$values[$this] ?? [];
        $unknown = \array_diff(\array_keys($values), self::KEYS);

        if ($unknown !== []) {
            throw new InvalidArgument(
                "\$settings['mcp_state'] has no key \"" . \implode('", "', $unknown) . '": there are '
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

    /** Whether the server gets our manager in this process. */
    public function isActive(): bool
    {
        return $this->get('scope') !== null || $this->sapi !== 'cli';
    }
}
