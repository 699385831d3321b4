<?php

declare(strict_types=1);

namespace Drupal\Core\DependencyInjection;

/** Double of Drupal's class, with the same methods. */
abstract class ServiceProviderBase
{
    public function register(ContainerBuilder $container)
    {
    }

    public function alter(ContainerBuilder $container)
    {
    }
}
