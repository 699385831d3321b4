<?php

declare(strict_types=1);

namespace McpState;

/** What an owner left behind when it ended. */
final class Detached
{
    public function __construct(
        /** Messages nobody took: they are gone. */
        public readonly int $droppedMessages,
        /** Requests nobody claimed: an answer that comes now is late ({@see LateReason::Abandoned}). */
        public readonly int $abandonedPending,
    ) {
    }
}
