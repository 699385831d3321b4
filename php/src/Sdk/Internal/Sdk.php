<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

use Mcp\Server\Session\SessionManagerInterface;

/**
 * Finds classes of the SDK that not all versions have, or that have different names.
 *
 * @internal
 */
final class Sdk
{
    /** The seconds that the SDK waits for a client by default. All versions have the same default. */
    public const DEFAULT_TIMEOUT_S = 120;

    /**
     * Returns the first of these classes that exists. The names are relative to the root namespace of the SDK, which
     * differs in a prefixed copy.
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

    /** Returns the SDK's root namespace with a trailing backslash. */
    public static function root(): string
    {
        return \substr(SessionManagerInterface::class, 0, -\strlen('Server\Session\SessionManagerInterface'));
    }

    /** Returns the exception that reports a failed store to the SDK, which responds with HTTP 503 since 0.9. */
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
            $exception = null; // The constructor has an unexpected signature.
        }

        return $exception instanceof \Throwable ? $exception : $failure;
    }
}
