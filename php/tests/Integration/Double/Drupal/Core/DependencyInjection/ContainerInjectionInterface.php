<?php

declare(strict_types=1);

namespace Drupal\Core\DependencyInjection;

use Symfony\Component\DependencyInjection\ContainerInterface;

/** Double of Drupal's interface, with the same method. */
interface ContainerInjectionInterface
{
    public static function create(ContainerInterface $container);
}
