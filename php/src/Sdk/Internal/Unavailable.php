<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

use McpState\Exception\ExceptionInterface;
use McpState\Exception\InvalidArgument;
use McpState\Exception\LimitExceeded;
use McpState\Exception\StoreFull;

/**
 * The response to a client if the store fails: HTTP 503 with Retry-After and a JSON-RPC error. The client then retries
 * and keeps its session; a 404 would make it start a new one.
 *
 * @internal
 */
final class Unavailable
{
    public const STATUS = 503;
    public const HEADERS = ['Retry-After' => '1'];

    /** The JSON-RPC error code "internal error". */
    public const CODE = -32603;

    /** Returns the store's failure that is $e or caused it; null if there is none. */
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
     * Returns the body of the response, for frameworks that create the response.
     *
     * @return array{jsonrpc: string, error: array{code: int, message: string}}
     */
    public static function error(ExceptionInterface $refusal): array
    {
        return ['jsonrpc' => '2.0', 'error' => ['code' => self::CODE, 'message' => self::message($refusal)]];
    }

    /** Returns the part of the failure that the client may see. */
    public static function message(ExceptionInterface $refusal): string
    {
        return $refusal instanceof LimitExceeded || $refusal instanceof StoreFull
            ? 'The session store is full.'
            : 'The session store is not available.';
    }
}
