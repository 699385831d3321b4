<?php

declare(strict_types=1);

namespace Drupal\mcp_state;

use Drupal\Core\DependencyInjection\ContainerInjectionInterface;
use Drupal\Core\Lock\LockBackendInterface;
use Symfony\Component\DependencyInjection\ContainerInterface;
use Symfony\Component\DependencyInjection\Reference;

/** mcp_server's controller, made with a lock that lets everybody in at once. The site's own lock is not touched. */
final class UnlockedController
{
    /** Names of Drupal's locks among the services. */
    public const LOCKS = ['lock', 'lock.persistent', LockBackendInterface::class];

    /** @param class-string $class */
    public static function create(string $class, ContainerInterface $container, LockBackendInterface $noLock): object
    {
        $services = new ContainerWithoutLock($container, $noLock);

        return \is_subclass_of($class, ContainerInjectionInterface::class) ? $class::create($services) : new $class();
    }

    /** Whether the constructor of $class takes a lock. */
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
     * @param array<array-key, mixed> $arguments of a service
     *
     * @return array<array-key, mixed> the same, but for references to locks
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
