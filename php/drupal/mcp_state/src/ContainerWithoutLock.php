<?php

declare(strict_types=1);

namespace Drupal\mcp_state;

use Drupal\Core\Lock\LockBackendInterface;
use Symfony\Component\DependencyInjection\ContainerInterface;

/** The site's container, with locks that never block. */
final class ContainerWithoutLock implements ContainerInterface
{
    public function __construct(
        private readonly ContainerInterface $container,
        private readonly LockBackendInterface $noLock,
    ) {
    }

    public function get(string $id, int $invalidBehavior = self::EXCEPTION_ON_INVALID_REFERENCE): ?object
    {
        return \in_array($id, UnlockedController::LOCKS, true)
            ? $this->noLock
            : $this->container->get($id, $invalidBehavior);
    }

    public function has(string $id): bool
    {
        return \in_array($id, UnlockedController::LOCKS, true) || $this->container->has($id);
    }

    public function set(string $id, ?object $service): void
    {
        $this->container->set($id, $service);
    }

    public function initialized(string $id): bool
    {
        return $this->container->initialized($id);
    }

    public function getParameter(string $name): array|bool|string|int|float|\UnitEnum|null
    {
        return $this->container->getParameter($name);
    }

    public function hasParameter(string $name): bool
    {
        return $this->container->hasParameter($name);
    }

    public function setParameter(string $name, mixed $value): void
    {
        $this->container->setParameter($name, $value);
    }
}
