<?php

declare(strict_types=1);

namespace McpState\Symfony;

use Symfony\Component\Security\Core\Authentication\Token\Storage\TokenStorageInterface;

/** Who is calling, as Symfony's security component says. */
final class SignedInUser
{
    public function __construct(private readonly ?TokenStorageInterface $tokens)
    {
    }

    /** Null: nobody in particular. */
    public function identifier(): ?string
    {
        return $this->tokens?->getToken()?->getUserIdentifier();
    }
}
