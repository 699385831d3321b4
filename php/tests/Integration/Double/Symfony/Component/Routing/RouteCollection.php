<?php

declare(strict_types=1);

namespace Symfony\Component\Routing;

/** Double of Symfony's collection: routes by name. */
class RouteCollection implements \IteratorAggregate
{
    /** @var array<string, Route> */
    private array $routes = [];

    public function add(string $name, Route $route): void
    {
        $this->routes[$name] = $route;
    }

    public function get(string $name): ?Route
    {
        return $this->routes[$name] ?? null;
    }

    public function getIterator(): \ArrayIterator
    {
        return new \ArrayIterator($this->routes);
    }
}
