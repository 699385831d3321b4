<?php

declare(strict_types=1);

namespace McpState;

use McpState\Internal\FailureKind;

/**
 * A request to the client, waiting for its answer.
 *
 * It ends exactly once (G2): answered, timed out, cancelled, or abandoned because its owner ended. The store decides
 * which, so whoever asks, in whatever process, hears the same.
 */
final class PendingRequest
{
    /** @internal Use {@see Owner::sendRequest()} or {@see Owner::pendingRequest()}. */
    public function __construct(
        public readonly Owner $owner,
        private readonly Native\Session|Ffi\Session $driver,
        /** The JSON-RPC id the client sees. */
        public readonly int $id,
    ) {
    }

    /**
     * Takes the outcome if there is one. Answered, TimedOut and Cancelled remove the request; Waiting, NotOwner and
     * Unknown change nothing. An answer that came in time counts, also when it is claimed after the deadline.
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
     * The client's answer without claiming it; null when there is none.
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
     * Gives the request up: an answer that still comes is late. Outcomes: Cancelled, Unknown, AlreadyAnswered,
     * TimedOut, AlreadyCancelled, NotOwner.
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
     * Waits until the request is resolved, and claims it. The process sleeps meanwhile and wakes when the answer comes
     * (G9), at least once a second, and for signals.
     *
     *     $claim = $owner->sendRequest($question)->await(onSlice: fn () => $stream->keepAlive());
     *
     * Nothing is sent to the client here: deliver {@see Owner::takeOutgoing()} first, or in $onSlice.
     *
     * @param int|null                 $waitMs  how long at most, besides the request's own timeout; when it has passed
     *                                          the claim says Waiting, and the request goes on
     * @param (\Closure(): mixed)|null $onSlice runs whenever the wait woke up and the request still waits, for
     *                                          keep-alives; what it throws ends the wait, and the request goes on
     *
     * @throws Exception\SessionNotFound when the session is gone, also when it goes while this waits
     * @throws Exception\OwnerExpired
     * @throws Exception\InvalidArgument when $waitMs is negative
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

            // One more than what is left, so that the next claim is past the deadline and not just before it.
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
