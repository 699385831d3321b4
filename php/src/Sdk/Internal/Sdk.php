<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

use Mcp\Server\Session\SessionManagerInterface;

/**
 * Classes of the SDK that are not in every version, or not under one name: found when they are needed.
 *
 * @internal
 */
final class Sdk
{
    /** How many seconds the SDK waits for a client when the tool names no time; all versions have the same. */
    public const DEFAULT_TIMEOUT_S = 120;

    /**
     * The first of these classes that exists. Names are relative to the SDK's root namespace, which a prefixed copy of
     * the SDK has elsewhere.
     *
     * @return class-string|null
     */
    public static function find(string ...$names): ?string
    {
        $root = self::root();

        foreach ($names as $name) {
            if (\class_exists($root . $name)) {
                return $root . $name;
            }
        }

        return null;
    }

    /** The SDK's root namespace with a backslash at its end. */
    public static function root(): string
    {
        return \substr(SessionManagerInterface::class, 0, -\strlen('Server\Session\SessionManagerInterface'));
    }

    /** What says to the SDK that the store cannot be asked, which it answers with HTTP 503 since 0.9. */
    public static function storeException(\Throwable $failure): \Throwable
    {
        $class = self::find(
            'Exception\SessionStoreException',
            'Server\Exception\SessionStoreException',
            'Server\Session\SessionStoreException',
            'Server\Session\Exception\SessionStoreException',
        );

        try {
            $exception = $class === null ? null : new $class($failure->getMessage(), 0, $failure);
        } catch (\Error) {
            $exception = null; // It is made in another way than exceptions are.
        }

        return $exception instanceof \Throwable ? $exception : $failure;
    }
}
