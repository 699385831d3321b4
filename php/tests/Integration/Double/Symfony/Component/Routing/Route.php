<?php

declare(strict_types=1);

namespace Symfony\Component\Routing;

/** Double of Symfony's route: a path and its defaults. */
class Route
{
    /** @param array<string, mixed> $defaults */
    public function __construct(public readonly string $path, private array $defaults = [])
    {
    }

    public function getDefault(string $name): mixed
    {
        return $this->defaults[$name] ?? null;
    }

    public function setDefault(string $name, mixed $default): static
    {
        $this->defaults[$name] = $default;

        return $this;
    }
}
