<?php

declare(strict_types=1);

namespace McpState;

/** The number of sessions and owners that one call of {@see Store::collect()} removed. */
final class Collected
{
    public function __construct(
        /** The number of expired sessions. */
        public readonly int $sessions,
        /**
         * The number of owners whose process died, or that were silent for too long, in the sessions that the call
         * visited.
         */
        public readonly int $owners,
        /** Whether expired sessions remain; if so, call {@see Store::collect()} again. */
        public readonly bool $more,
    ) {
    }
}
