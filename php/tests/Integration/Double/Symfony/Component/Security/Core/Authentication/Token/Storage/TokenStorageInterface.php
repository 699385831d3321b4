<?php

declare(strict_types=1);

namespace Symfony\Component\Security\Core\Authentication\Token\Storage;

use Symfony\Component\Security\Core\Authentication\Token\TokenInterface;

/** Double of Symfony's interface, with the one method that the bundle uses. */
interface TokenStorageInterface
{
    public function getToken(): ?TokenInterface;
}
