<?php

declare(strict_types=1);

namespace McpState\Ffi;

/**
 * Any failure of the engine, as `McpState\Native\Failure` is: the code is the number of its kind.
 *
 * @internal
 */
final class Failure extends \RuntimeException
{
    /**
     * @param string $limit   the limit's name when it was exceeded, else ''
     * @param int    $maximum the limit, else 0
     * @param int    $actual  the value that would have passed it, else 0
     */
    public function __construct(
        string $message,
        int $code,
        public readonly string $limit = '',
        public readonly int $maximum = 0,
        public readonly int $actual = 0,
    ) {
        parent::__construct($message, $code);
    }
}
