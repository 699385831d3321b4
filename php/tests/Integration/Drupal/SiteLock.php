<?php

declare(strict_types=1);

namespace McpState\Tests\Integration\Drupal;

use Drupal\Core\Lock\LockBackendInterface;

/** The site's own lock, which is always taken. */
final class SiteLock implements LockBackendInterface
{
    public function acquire($name, $timeout = 30.0): bool
    {
        return false;
    }

    public function release($name): void
    {
    }
}
