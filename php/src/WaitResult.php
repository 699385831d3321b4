<?php

declare(strict_types=1);

namespace McpState;

/** How one slice of waiting ended. */
final class WaitResult
{
    public function __construct(
        public readonly WaitStatus $status,
        /** The `$after` of the next {@see Owner::wait()} for the same interest: what happened since is seen then, once. */
        public readonly int $cursor,
    ) {
    }
}
