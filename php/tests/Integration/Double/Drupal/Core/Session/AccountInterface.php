<?php

declare(strict_types=1);

namespace Drupal\Core\Session;

/** Double of Drupal's interface, with the methods that the module uses. */
interface AccountInterface
{
    public function id();

    public function isAuthenticated();
}
