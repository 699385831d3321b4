<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

use McpState\Exception\ExceptionInterface;
use McpState\Exception\InvalidArgument;
use McpState\Exception\LimitExceeded;
use McpState\Exception\StoreFull;

/**
 * What a client hears of a store that cannot do its part: HTTP 503 with Retry-After and a JSON-RPC error. It tries again
 * then, and keeps its session; a 404 would make it start over.
 *
 * @internal
 */
final class Unavailable
{
    public const STATUS = 503;
    public const HEADERS = ['Retry-After' => '1'];

    /** The JSON-RPC code: internal error. */
    public const CODE = -32603;

    /** The failure of the store that $e is or was caused by; null when the store has no part in it. */
    public static function cause(\Throwable $e): ?ExceptionInterface
    {
        for ($cause = $e; $cause !== null; $cause = $cause->getPrevious()) {
            if ($cause instanceof ExceptionInterface && !$cause instanceof InvalidArgument) {
                return $cause;
            }
        }

        return null;
    }

    /**
     * The body of the response, for frameworks that make it.
     *
     * @return array{jsonrpc: string, error: array{code: int, message: string}}
     */
    public static function error(ExceptionInterface $refusal): array
    {
        return ['jsonrpc' => '2.0', 'error' => ['code' => self::CODE, 'message' => self::message($refusal)]];
    }

    /** What the client may know of it. */
    public static function message(ExceptionInterface $refusal): string
    {
        return $refusal instanceof LimitExceeded || $refusal instanceof StoreFull
            ? 'The session store is full.'
            : 'The session store is not available.';
    }
}
