<?php

declare(strict_types=1);

namespace Drupal\Core\Lock;

/** Double of Drupal's interface, with the methods that the double of mcp_server's controller calls. */
interface LockBackendInterface
{
    public function acquire($name, $timeout = 30.0);

    public function release($name);
}
