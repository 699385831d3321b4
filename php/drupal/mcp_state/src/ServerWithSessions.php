<?php

declare(strict_types=1);

namespace Drupal\mcp_state;

use Mcp\Server\Session\SessionManagerInterface;
use Psr\Log\LoggerInterface;

/**
 * A built `Mcp\Server` with another session manager.
 *
 * mcp_server builds its server in a factory of its own, which takes a session store but no manager; the SDK's classes are
 * final or keep their parts to themselves. So server and protocol are copied part by part, all parts the same but the
 * manager. On an SDK that keeps it elsewhere nothing is replaced, and log and status report say so.
 */
final class ServerWithSessions
{
    /**
     * @template T of object
     *
     * @param T $server
     *
     * @return T
     */
    public static function wrap(
        object $server,
        SessionManagerInterface $sessions,
        ModuleSettings $settings,
        LoggerInterface $logger,
    ): object {
        if (!$settings->isActive()) {
            return $server;
        }

        $path = self::path($server::class);

        if ($path === null) {
            $logger->error('mcp_state replaced nothing: {class} of this mcp/sdk keeps its sessions elsewhere.', [
                'class' => $server::class,
            ]);

            return $server;
        }

        [$protocol, $manager] = $path;
        $copy = self::copy($protocol->getValue($server), $manager, $sessions);

        return self::copy($server, $protocol, $copy);
    }

    /** Whether servers of this class can be given a manager. */
    public static function fits(string $class): bool
    {
        return \class_exists($class) && self::path($class) !== null;
    }

    /**
     * The server's property that holds an object with a session manager, and that object's property.
     *
     * @param class-string $class
     *
     * @return array{\ReflectionProperty, \ReflectionProperty}|null
     */
    private static function path(string $class): ?array
    {
        foreach ((new \ReflectionClass($class))->getProperties() as $part) {
            $type = $part->getType();

            if (!$type instanceof \ReflectionNamedType || $type->isBuiltin() || !\class_exists($type->getName())) {
                continue;
            }

            foreach ((new \ReflectionClass($type->getName()))->getProperties() as $property) {
                if ((string) $property->getType() === SessionManagerInterface::class) {
                    return [$part, $property];
                }
            }
        }

        return null;
    }

    /** A copy of $original whose $property is $value. */
    private static function copy(object $original, \ReflectionProperty $property, object $value): object
    {
        $class = new \ReflectionClass($original);
        $copy = $class->newInstanceWithoutConstructor();

        for (; $class !== false; $class = $class->getParentClass()) {
            foreach ($class->getProperties() as $each) {
                if ($each->isStatic() || !$each->isInitialized($original) || $each->getDeclaringClass() != $class) {
                    continue;
                }

                $isReplaced = $each->name === $property->name && $each->class === $property->class;
                $each->setValue($copy, $isReplaced ? $value : $each->getValue($original));
            }
        }

        return $copy;
    }
}
