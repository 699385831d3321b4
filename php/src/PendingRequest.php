<?php

declare(strict_types=1);

namespace McpState;

use McpState\Internal\FailureKind;

/**
 * A request from the server to the client that awaits its response.
 *
 * It ends exactly once (G2): answered, timed out, cancelled, or abandoned because its owner ended. The store decides
 * how it ends, so all processes get the same result.
 */
final class PendingRequest
{
    /** @internal Use {@see Owner::sendRequest()} or {@see Owner::pendingRequest()}. */
    public function __construct(
        public readonly Owner $owner,
        private readonly Native\Session|Ffi\Session $driver,
        /** The JSON-RPC id that the client sees. */
        public readonly int $id,
    ) {
    }

    /**
     * Claims the request. Answered, TimedOut and Cancelled remove the request; Waiting, NotOwner and Unknown change
     * nothing. A response that arrived before the deadline counts even if it is claimed after the deadline.
     *
     * @throws Exception\OwnerExpired
     * @throws Exception\SessionNotFound
     */
    public function claim(): Claim
    {
        try {
            [$status, $payload, $remainingMs] = $this->driver->claim($this->owner->token, $this->id);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }

        return new Claim($this->id, PendingStatus::from($status), $payload, $remainingMs);
    }

    /**
     * Returns the client's response as JSON text without claiming it; null if there is none.
     *
     * @throws Exception\OwnerExpired
     * @throws Exception\SessionNotFound
     */
    public function peek(): ?string
    {
        try {
            return $this->driver->peekResponse($this->owner->token, $this->id);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }

    /**
     * Cancels the request; a response that arrives afterwards is late (G4). The possible outcomes are Cancelled,
     * Unknown, AlreadyAnswered, TimedOut, AlreadyCancelled and NotOwner.
     *
     * @throws Exception\OwnerExpired
     * @throws Exception\SessionNotFound
     */
    public function cancel(): CancelOutcome
    {
        try {
            return CancelOutcome::from($this->driver->cancelPending($this->owner->token, $this->id));
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }

    /**
     * Waits until the request is resolved, and claims it. The process sleeps until the response arrives (G9). It also
     * wakes at least once a second, and for signals.
     *
     *     $claim = $owner->sendRequest($question)->await(onSlice: fn () => $stream->keepAlive());
     *
     * This method sends nothing to the client: deliver the messages of {@see Owner::takeOutgoing()} before the call, or
     * in $onSlice.
     *
     * @param int|null                 $waitMs  the longest wait in milliseconds; null: until the request's own
     *                                          deadline. After a shorter wait the claim reports Waiting, and the
     *                                          request stays pending
     * @param (\Closure(): mixed)|null $onSlice runs each time the process wakes and the request is still pending, for
     *                                          example to send a keep-alive. An exception from $onSlice ends the wait,
     *                                          and the request stays pending
     *
     * @throws Exception\SessionNotFound if the session has ended, or ends during the wait
     * @throws Exception\OwnerExpired
     * @throws Exception\InvalidArgument if $waitMs is negative
     */
    public function await(?int $waitMs = null, ?\Closure $onSlice = null): Claim
    {
        if ($waitMs !== null && $waitMs < 0) {
            throw new Exception\InvalidArgument("a wait of $waitMs ms is not valid: it must be 0 or more");
        }

        $startedAt = \hrtime(true);
        $after = 0;

        for ($slice = 0;; ++$slice) {
            $claim = $this->claim();

            if ($claim->status !== PendingStatus::Waiting) {
                return $claim;
            }

            if ($slice > 0 && $onSlice !== null) {
                $onSlice();
            }

            // The slice ends 1 ms after the deadline, so that the next claim reports TimedOut instead of Waiting.
            $sliceMs = \min(1000, (int) $claim->remainingMs + 1);

            if ($waitMs !== null) {
                $leftMs = $waitMs - \intdiv(\hrtime(true) - $startedAt, 1_000_000);

                if ($leftMs <= 0) {
                    return $claim;
                }

                $sliceMs = \min($sliceMs, $leftMs);
            }

            $result = $this->owner->wait($sliceMs, $after, Interest::Resolution);
            $after = $result->cursor;

            if ($result->status === WaitStatus::Destroyed) {
                throw new Exception\SessionNotFound(
                    "the session ended while request {$this->id} waited for its answer"
                );
            }
        }
    }
}
