<?php

declare(strict_types=1);

namespace McpState\Tests\Integration\Drupal;

use Drupal\Core\Session\AccountInterface;

/** The current user; 0 is the anonymous user. */
final class User implements AccountInterface
{
    public int $id = 0;

    public function id(): int
    {
        return $this->id;
    }

    public function isAuthenticated(): bool
    {
        return $this->id > 0;
    }
}
