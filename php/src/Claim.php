<?php

declare(strict_types=1);

namespace McpState;

use McpState\Internal\Json;

/**
 * What claiming a pending request gave.
 *
 * A request ends exactly once. The claim that says Answered, TimedOut or Cancelled is that end: it removed the request
 * and its answer together, so the next claim says Unknown.
 */
final class Claim
{
    public function __construct(
        public readonly int $id,
        public readonly PendingStatus $status,
        /** The client's answer as text; null unless the status is Answered. */
        public readonly ?string $payload,
        /** Milliseconds to the deadline; null unless the status is Waiting. */
        public readonly ?int $remainingMs,
    ) {
    }

    /** Whether the client answered in time: `$payload` and {@see json()} hold its answer. */
    public function isAnswered(): bool
    {
        return $this->status === PendingStatus::Answered;
    }

    /**
     * The client's answer, decoded: objects are associative arrays. Null unless the status is Answered.
     *
     * @throws Exception\InvalidArgument when the answer is not JSON
     */
    public function json(): mixed
    {
        return $this->payload === null ? null : Json::decode($this->payload);
    }
}
