<?php

declare(strict_types=1);

namespace Symfony\Component\Security\Core\Authentication\Token;

/** Double: the one method that is used. */
interface TokenInterface
{
    public function getUserIdentifier(): string;
}
