<?php

declare(strict_types=1);

namespace McpState\Tests\Integration\Symfony;

use Symfony\Component\Security\Core\Authentication\Token\Storage\TokenStorageInterface;
use Symfony\Component\Security\Core\Authentication\Token\TokenInterface;

/** A token storage with a signed-in user. */
final class SignedIn implements TokenStorageInterface, TokenInterface
{
    public function __construct(public ?string $user = null)
    {
    }

    public function getToken(): ?TokenInterface
    {
        return $this->user === null ? null : $this;
    }

    public function getUserIdentifier(): string
    {
        return (string) $this->user;
    }
}
