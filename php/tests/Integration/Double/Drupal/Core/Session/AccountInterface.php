<?php

declare(strict_types=1);

namespace Drupal\Core\Session;

/** Double of Drupal's interface: the methods that are used. */
interface AccountInterface
{
    public function id();

    public function isAuthenticated();
}
