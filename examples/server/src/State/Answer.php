<?php

declare(strict_types=1);

namespace McpState\Example\State;

use McpState\PendingStatus;

/** The status of a question to the client, and its answer. */
final class Answer
{
    /**
     * @param ?array<string, mixed> $response    the client's JSON-RPC response if the status is Answered
     * @param int                   $remainingMs milliseconds until the question times out if the status is Waiting
     */
    public function __construct(
        public readonly PendingStatus $status,
        public readonly ?array $response = null,
        public readonly int $remainingMs = 0,
    ) {
    }
}
