<?php

declare(strict_types=1);

namespace Symfony\Component\Security\Core\Authentication\Token;

/** Double of Symfony's interface, with the one method that the bundle uses. */
interface TokenInterface
{
    public function getUserIdentifier(): string;
}
