<?php

declare(strict_types=1);

namespace McpState\Ffi;

/**
 * A failure of the engine, like `McpState\Native\Failure`. The code is the number of its kind.
 *
 * @internal
 */
final class Failure extends \RuntimeException
{
    /**
     * @param string $limit   the name of the exceeded limit; empty for other kinds of failure
     * @param int    $maximum the highest value that the limit allows; 0 for other kinds
     * @param int    $actual  the value that would have exceeded the limit; 0 for other kinds
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
