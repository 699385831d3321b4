<?php

declare(strict_types=1);

namespace McpState;

/** The messages of a topic that follow a cursor, as {@see Store::since()} returns them. */
final class BusEntries
{
    /** @param list<BusMessage> $messages */
    public function __construct(
        /** The messages, oldest first and without gaps. */
        public readonly array $messages,
        /** The cursor to pass to the next {@see Store::since()}. */
        public readonly int $cursor,
        /**
         * The number of messages after the old cursor that the ring had already dropped because this reader was too
         * slow.
         */
        public readonly int $missed,
    ) {
    }
}
