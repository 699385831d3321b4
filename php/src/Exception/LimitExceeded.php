<?php

declare(strict_types=1);

namespace McpState\Exception;

/**
 * The operation would have exceeded a limit of the store (G10). It changed nothing. Operations that free space still
 * work.
 */
final class LimitExceeded extends \OverflowException implements ExceptionInterface
{
    public function __construct(
        string $message,
        /**
         * The name of the limit, which is also the DSN option that sets it, such as `max_message_bytes` or
         * `max_owners`.
         */
        public readonly string $limit,
        /** The highest value that the limit allows. */
        public readonly int $maximum,
        /** The value that would have exceeded the limit. */
        public readonly int $actual,
        int $code = 0,
        ?\Throwable $previous = null,
    ) {
        parent::__construct($message, $code, $previous);
    }
}
