<?php

declare(strict_types=1);

namespace Drupal\mcp_state;

use Mcp\Server\Session\SessionManagerInterface;
use Psr\Log\LoggerInterface;

/**
 * Copies a built `Mcp\Server` and gives the copy another session manager.
 *
 * The factory of mcp_server accepts a session store but no manager, and the SDK's classes are final or have private
 * properties. This class therefore copies the server and its protocol property by property, except for the manager. If
 * the SDK keeps its manager in an unknown place, this class replaces nothing, and the log and the status report say so.
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
            $logger->error('mcp_state replaced nothing: {class} keeps its session manager in an unknown property.', [
                'class' => $server::class,
            ]);

            return $server;
        }

        [$protocol, $manager] = $path;
        $copy = self::copy($protocol->getValue($server), $manager, $sessions);

        return self::copy($server, $protocol, $copy);
    }

    /** Tells whether this class can give a manager to servers of this class. */
    public static function fits(string $class): bool
    {
        return \class_exists($class) && self::path($class) !== null;
    }

    /**
     * Returns the server's property that holds an object with a session manager, and that object's property.
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

    /** Returns a copy of $original with another value in $property. */
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
