<?php

declare(strict_types=1);

namespace McpState\Example\State;

use McpState\PendingStatus;

/**
 * What has become of a question to the client.
 */
final class Answer
{
    /**
     * @param ?array<string, mixed> $response the client's JSON-RPC response, when the status is Answered
     * @param int $remainingMs until the question times out, when the status is Waiting
     */
    public function __construct(
        public readonly PendingStatus $status,
        public readonly ?array $response = null,
        public readonly int $remainingMs = 0,
    ) {
    }
}
