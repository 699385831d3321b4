<?php

declare(strict_types=1);

namespace Symfony\Component\Security\Core\Authentication\Token\Storage;

use Symfony\Component\Security\Core\Authentication\Token\TokenInterface;

/** Double: the one method that is used. */
interface TokenStorageInterface
{
    public function getToken(): ?TokenInterface;
}
