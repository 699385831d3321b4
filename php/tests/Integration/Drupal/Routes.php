<?php

declare(strict_types=1);

namespace McpState\Tests\Integration\Drupal;

use Symfony\Component\Routing\Route;
use Symfony\Component\Routing\RouteCollection;

/** The routes in the form that Drupal passes to route subscribers. */
final class Routes
{
    private readonly RouteCollection $collection;

    /** @param array<string, string> $controllers of routes, by name */
    public function __construct(array $controllers)
    {
        $this->collection = new RouteCollection();

        foreach ($controllers as $name => $controller) {
            $this->collection->add($name, new Route('/', ['_controller' => $controller]));
        }
    }

    public function getRouteCollection(): RouteCollection
    {
        return $this->collection;
    }

    public function controllerOf(string $name): string
    {
        return $this->collection->get($name)->getDefault('_controller');
    }
}
