<?php

declare(strict_types=1);

namespace McpState;

/** Messages of a topic after a cursor. */
final class BusEntries
{
    /** @param list<BusMessage> $messages */
    public function __construct(
        /** Oldest first, without gaps between them. */
        public readonly array $messages,
        /** Where to read on. */
        public readonly int $cursor,
        /** How many messages after the old cursor the ring had dropped already: this reader fell behind. */
        public readonly int $missed,
    ) {
    }
}
