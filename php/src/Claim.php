<?php

declare(strict_types=1);

namespace McpState;

use McpState\Internal\Json;

/**
 * The result of claiming a pending request.
 *
 * A pending request ends exactly once (G2). The claim that reports Answered, TimedOut or Cancelled ends it: the claim
 * removes the request together with its response, and the next claim reports Unknown.
 */
final class Claim
{
    public function __construct(
        public readonly int $id,
        public readonly PendingStatus $status,
        /** The client's response as JSON text; null unless the status is Answered. */
        public readonly ?string $payload,
        /** The milliseconds until the deadline; null unless the status is Waiting. */
        public readonly ?int $remainingMs,
    ) {
    }

    /** Tells whether the client responded in time. If so, `$payload` and {@see json()} hold the response. */
    public function isAnswered(): bool
    {
        return $this->status === PendingStatus::Answered;
    }

    /**
     * Decodes the client's response, with JSON objects as associative arrays. Returns null unless the status is
     * Answered.
     *
     * @throws Exception\InvalidArgument if the response is not JSON
     */
    public function json(): mixed
    {
        return $this->payload === null ? null : Json::decode($this->payload);
    }
}
