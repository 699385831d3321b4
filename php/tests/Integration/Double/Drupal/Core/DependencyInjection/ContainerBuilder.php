<?php

declare(strict_types=1);

namespace Drupal\Core\DependencyInjection;

use Symfony\Component\DependencyInjection\ContainerBuilder as SymfonyContainerBuilder;

/** Double of Drupal's container builder, which is Symfony's. */
class ContainerBuilder extends SymfonyContainerBuilder
{
}
