<?php

declare(strict_types=1);

namespace McpState;

/** A JSON-RPC message that exactly one owner delivers to the client through its stream. */
final class OutgoingMessage
{
    public function __construct(
        /** The sequence number, which rises with each message of the owner. {@see Owner::acknowledge()} takes it. */
        public readonly int $sequence,
        /** The JSON-RPC message as text, ready to send. */
        public readonly string $body,
        /** The context that the caller queued together with the message. It is never sent. */
        public readonly string $context,
    ) {
    }
}
