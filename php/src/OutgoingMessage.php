<?php

declare(strict_types=1);

namespace McpState;

/** A message to deliver to the client through exactly one owner's stream. */
final class OutgoingMessage
{
    public function __construct(
        /** Rises with each message of the owner; {@see Owner::acknowledge()} takes it. */
        public readonly int $sequence,
        /** The JSON-RPC message as text, ready to be sent. */
        public readonly string $body,
        /** What was given with the message when it was queued; never sent. */
        public readonly string $context,
    ) {
    }
}
