<?php

declare(strict_types=1);

namespace McpState;

/** A message of a topic of the notification bus. */
final class BusMessage
{
    public function __construct(
        /** Its number: those of one topic rise by one, in one order for all readers. */
        public readonly int $number,
        public readonly string $message,
    ) {
    }
}
