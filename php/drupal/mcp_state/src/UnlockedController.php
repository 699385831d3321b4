<?php

declare(strict_types=1);

namespace Drupal\mcp_state;

use Drupal\Core\DependencyInjection\ContainerInjectionInterface;
use Drupal\Core\Lock\LockBackendInterface;
use Symfony\Component\DependencyInjection\ContainerInterface;
use Symfony\Component\DependencyInjection\Reference;

/** Creates the controller of mcp_server with a lock that never blocks. The lock service of the site stays unchanged. */
final class UnlockedController
{
    /** The service ids of Drupal's locks. */
    public const LOCKS = ['lock', 'lock.persistent', LockBackendInterface::class];

    /** @param class-string $class */
    public static function create(string $class, ContainerInterface $container, LockBackendInterface $noLock): object
    {
        $services = new ContainerWithoutLock($container, $noLock);

        return \is_subclass_of($class, ContainerInjectionInterface::class) ? $class::create($services) : new $class();
    }

    /** Tells whether the constructor of $class takes a lock. */
    public static function takesLock(string $class): bool
    {
        foreach ((new \ReflectionClass($class))->getConstructor()?->getParameters() ?? [] as $parameter) {
            $type = $parameter->getType();

            if ($type instanceof \ReflectionNamedType && \is_a($type->getName(), LockBackendInterface::class, true)) {
                return true;
            }
        }

        return false;
    }

    /**
     * @param array<array-key, mixed> $arguments the arguments of a service
     *
     * @return array<array-key, mixed> the arguments with a lock that never blocks in place of each reference to a lock
     */
    public static function withoutLock(array $arguments): array
    {
        return \array_map(
            static fn (mixed $argument): mixed =>
                $argument instanceof Reference && \in_array((string) $argument, self::LOCKS, true)
                    ? new Reference('mcp_state.no_lock')
                    : $argument,
            $arguments,
        );
    }
}
