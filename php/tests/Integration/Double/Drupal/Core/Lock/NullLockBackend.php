<?php

declare(strict_types=1);

namespace Drupal\Core\Lock;

/** Double of Drupal's lock that never blocks. */
class NullLockBackend implements LockBackendInterface
{
    public function acquire($name, $timeout = 30.0)
    {
        return true;
    }

    public function release($name)
    {
    }
}
