<?php

declare(strict_types=1);

namespace McpState;

/** How one slice of waiting ended. */
final class WaitResult
{
    public function __construct(
        public readonly WaitStatus $status,
        /** The `$after` of the next {@see Owner::wait()}: what happened since is seen then, and nothing twice. */
        public readonly int $cursor,
    ) {
    }
}
