<?php

declare(strict_types=1);

namespace McpState\Example;

/** A JSON-RPC error response. The code of the exception is the code of the error. */
final class RpcError extends \RuntimeException
{
    public const PARSE_ERROR = -32700;
    public const INVALID_REQUEST = -32600;
    public const METHOD_NOT_FOUND = -32601;
    public const INVALID_PARAMS = -32602;
    public const INTERNAL_ERROR = -32603;

    public function __construct(int $code, string $message, public readonly int $status = 200)
    {
        parent::__construct($message, $code);
    }
}
