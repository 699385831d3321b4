<?php

declare(strict_types=1);

namespace Drupal\Core\Routing;

use Symfony\Component\Routing\RouteCollection;

/** Double of Drupal's class, which Drupal calls when it builds its routes. */
abstract class RouteSubscriberBase
{
    abstract protected function alterRoutes(RouteCollection $collection);

    public function onAlterRoutes(object $event): void
    {
        $this->alterRoutes($event->getRouteCollection());
    }
}
