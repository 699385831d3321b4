<?php

declare(strict_types=1);

namespace McpState\Exception;

/** A limit of the store would be passed. Nothing was changed; what frees space always works. */
final class LimitExceeded extends \OverflowException implements ExceptionInterface
{
    public function __construct(
        string $message,
        /** The limit's name, which is the DSN option that sets it: `max_message_bytes`, `max_owners`, … */
        public readonly string $limit,
        /** What it allows. */
        public readonly int $maximum,
        /** The value that would have passed it. */
        public readonly int $actual,
        int $code = 0,
        ?\Throwable $previous = null,
    ) {
        parent::__construct($message, $code, $previous);
    }
}
