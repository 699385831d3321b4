<?php

declare(strict_types=1);

namespace McpState;

/** What one call of {@see Store::collect()} removed. */
final class Collected
{
    public function __construct(
        /** Expired sessions. */
        public readonly int $sessions,
        /** Owners of dead processes, or silent for too long, in the sessions looked at. */
        public readonly int $owners,
        /** Whether there is more to collect: call again. */
        public readonly bool $more,
    ) {
    }
}
