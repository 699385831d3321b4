<?php

declare(strict_types=1);

namespace McpState\Symfony;

use Symfony\Component\Security\Core\Authentication\Token\Storage\TokenStorageInterface;

/** The principal of the caller, from Symfony's security component. */
final class SignedInUser
{
    public function __construct(private readonly ?TokenStorageInterface $tokens)
    {
    }

    /** Returns the identifier of the signed-in user; null if nobody has signed in. */
    public function identifier(): ?string
    {
        return $this->tokens?->getToken()?->getUserIdentifier();
    }
}
