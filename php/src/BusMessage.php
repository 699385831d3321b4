<?php

declare(strict_types=1);

namespace McpState;

/** A message on a topic of the notification bus. */
final class BusMessage
{
    public function __construct(
        /** The number of the message. The numbers of one topic rise by one, and every reader sees the same order. */
        public readonly int $number,
        public readonly string $message,
    ) {
    }
}
