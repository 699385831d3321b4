<?php

declare(strict_types=1);

namespace McpState;

/** The messages and requests that an owner left behind when it ended (G11). */
final class Detached
{
    public function __construct(
        /** The number of outgoing messages that the owner never took. The store has dropped them. */
        public readonly int $droppedMessages,
        /**
         * The number of pending requests that the owner never claimed. Their responses are late
         * ({@see LateReason::Abandoned}).
         */
        public readonly int $abandonedPending,
    ) {
    }
}
