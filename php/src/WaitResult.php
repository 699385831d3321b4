<?php

declare(strict_types=1);

namespace McpState;

/** The result of one slice of waiting. */
final class WaitResult
{
    public function __construct(
        public readonly WaitStatus $status,
        /**
         * The value for $after in the next {@see Owner::wait()} for the same interest, which then reports each later
         * event once.
         */
        public readonly int $cursor,
    ) {
    }
}
