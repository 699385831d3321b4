<?php

declare(strict_types=1);

namespace McpState;

use McpState\Internal\FailureKind;
use McpState\Internal\Json;

/**
 * One exchange being served: the HTTP request, stream or fiber that delivers messages to the client.
 *
 * The messages and requests of an owner belong to that owner alone (G3): no other owner takes its messages, claims its
 * responses or sees its timeouts.
 *
 * Every operation throws {@see Exception\OwnerExpired} once the owner has ended (see {@see Session::attach()}) and
 * {@see Exception\SessionNotFound} once the session has ended (G7).
 */
final class Owner
{
    /** @internal Use {@see Session::attach()} and {@see Session::owner()}. */
    public function __construct(
        public readonly Session $session,
        private readonly Native\Session|Ffi\Session $driver,
        /** The owner token: random, unique and impossible to guess. */
        public readonly string $token,
    ) {
    }

    /**
     * Queues an outgoing message, which only this owner delivers (G3).
     *
     * @param string|array<array-key, mixed> $message a JSON-RPC message
     * @param string                         $context stored with the message and returned to the code that sends it
     *
     * @return int the sequence number of the message among the owner's messages
     *
     * @throws Exception\LimitExceeded
     * @throws Exception\InvalidArgument
     */
    public function enqueueOutgoing(string|array $message, string $context = ''): int
    {
        $message = \is_string($message) ? $message : Json::encode($message);

        try {
            return $this->driver->enqueueOutgoing($this->token, $message, $context);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }

    /**
     * Removes at most $max messages from the queue and returns them in order. Delivery is at most once: if the process
     * dies before it has sent the messages, they are lost. A stream also receives the session's broadcasts.
     *
     * @return list<OutgoingMessage>
     *
     * @throws Exception\InvalidArgument
     */
    public function takeOutgoing(int $max = 100): array
    {
        try {
            return $this->messages($this->driver->takeOutgoing($this->token, $max));
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }

    /**
     * Returns the same messages as {@see takeOutgoing()}, but keeps them until {@see acknowledge()}. Delivery is at
     * least once. A broadcast now belongs to this owner, and returns to the session if the owner ends without
     * acknowledging it.
     *
     * @return list<OutgoingMessage>
     *
     * @throws Exception\InvalidArgument
     */
    public function peekOutgoing(int $max = 100): array
    {
        try {
            return $this->messages($this->driver->peekOutgoing($this->token, $max));
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }

    /**
     * Removes the owner's messages up to and including sequence number $upTo.
     *
     * @return int the number of removed messages
     *
     * @throws Exception\InvalidArgument
     */
    public function acknowledge(int $upTo): int
    {
        try {
            return $this->driver->acknowledge($this->token, $upTo);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }

    /**
     * Sends a request to the client: generates an id for $message, registers the pending request and queues the
     * message, in one transaction. Deliver the messages of {@see takeOutgoing()} afterwards, then call
     * {@see PendingRequest::await()}.
     *
     * @param string|array<array-key, mixed> $message   a JSON-RPC request without `id`
     * @param int|null                       $timeoutMs milliseconds after which the request times out and its response
     *                                                  is late; null: the store's `request_timeout_ms`
     * @param string                         $context   stored with the message and returned to the code that sends it
     *
     * @throws Exception\LimitExceeded
     * @throws Exception\InvalidArgument
     */
    public function sendRequest(
        string|array $message,
        ?int $timeoutMs = null,
        string $context = '',
    ): PendingRequest {
        $message = \is_string($message) ? $message : Json::encode($message);

        try {
            $id = $this->driver->sendRequest($this->token, $message, $timeoutMs, $context);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }

        return new PendingRequest($this, $this->driver, $id);
    }

    /**
     * Registers a pending request that the caller sends to the client without the outgoing queue.
     *
     * @param int      $id        a JSON-RPC id, preferably from {@see Session::nextRequestId()}
     * @param int|null $timeoutMs milliseconds after which the request times out; null: the store's `request_timeout_ms`
     * @param string   $method    the JSON-RPC method to show in listings, at most 128 bytes
     *
     * @throws Exception\DuplicateRequestId if the session already has a pending request with this id
     * @throws Exception\LimitExceeded
     * @throws Exception\InvalidArgument
     */
    public function registerPending(int $id, ?int $timeoutMs = null, string $method = ''): PendingRequest
    {
        try {
            $remainingMs = $this->driver->registerPending($this->token, $id, $timeoutMs, $method);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }

        if ($remainingMs === null) {
            throw new Exception\DuplicateRequestId(
                "this session already has a pending request with the id $id; nextRequestId() returns a free one"
            );
        }

        return new PendingRequest($this, $this->driver, $id);
    }

    /**
     * Returns an object for the pending request with this id. This method does not access the store;
     * {@see PendingRequest::claim()} reports whether the request exists.
     */
    public function pendingRequest(int $id): PendingRequest
    {
        return new PendingRequest($this, $this->driver, $id);
    }

    /**
     * Lists this owner's pending requests.
     *
     * @return list<PendingInfo>
     */
    public function pending(): array
    {
        try {
            return PendingInfo::fromRows($this->driver->pending($this->token));
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }

    /**
     * Claims the next of this owner's requests that was answered, timed out or was cancelled; null if there is none.
     * This suits loops that serve several requests at once.
     */
    public function claimAny(): ?Claim
    {
        try {
            $claim = $this->driver->claimAny($this->token);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }

        return $claim === null ? null : new Claim($claim[0], PendingStatus::from($claim[1]), $claim[2], null);
    }

    /**
     * Removes this owner's requests whose deadline has passed.
     *
     * @return list<int> their ids
     */
    public function resolveTimeouts(): array
    {
        try {
            return $this->driver->resolveTimeouts($this->token);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }

    /**
     * Waits for an event of interest that is newer than $after. One call is one slice of at most $waitMs and at most
     * one second. The process sleeps until another process wakes it, without polling (G9). Call this method in a loop
     * and pass the cursor of the last result:
     *
     *     $after = 0;
     *     do {
     *         $result = $owner->wait(1000, $after, Interest::Message);
     *         $after = $result->cursor;
     *         // send $owner->takeOutgoing(), or a keep-alive
     *     } while ($result->status !== WaitStatus::Destroyed);
     *
     * @param int      $waitMs      the longest wait in milliseconds
     * @param int      $after       the cursor of the last result for the same interest; 0: earlier events count too
     * @param Interest ...$interest the events to wait for; none: all of them
     *
     * @throws Exception\InvalidArgument
     */
    public function wait(int $waitMs, int $after = 0, Interest ...$interest): WaitResult
    {
        $mask = 0;

        foreach ($interest ?: Interest::cases() as $one) {
            $mask |= $one->value;
        }

        try {
            [$status, $cursor] = $this->driver->wait($this->token, $mask, $after, $waitMs);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }

        return new WaitResult(WaitStatus::from($status), $cursor);
    }

    /**
     * Registers an in-flight request: this owner serves the client's request with this JSON-RPC id. In-flight requests
     * with equal ids keep their own responses, unless the policy rejects the second one (G6).
     *
     * @param int|string $rpcId the id exactly as the client sent it: `1` is not `"1"`
     *
     * @return bool false if a request with this id is in flight and the policy is Reject
     *
     * @throws Exception\LimitExceeded
     * @throws Exception\InvalidArgument
     */
    public function beginRequest(int|string $rpcId, DuplicatePolicy $policy = DuplicatePolicy::Isolate): bool
    {
        try {
            return $this->driver->beginRequest($this->token, $rpcId, $policy->value);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }

    /**
     * Ends the in-flight request with this JSON-RPC id, which the owner has served.
     *
     * @param int|string $rpcId the id exactly as the client sent it: `1` is not `"1"`
     *
     * @return bool|null whether the client cancelled the request; null if this owner had no such request in flight
     *
     * @throws Exception\InvalidArgument
     */
    public function finishRequest(int|string $rpcId): ?bool
    {
        try {
            return $this->driver->finishRequest($this->token, $rpcId);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }

    /**
     * Tells whether the client has cancelled this in-flight request. {@see wait()} reports the event as
     * {@see Interest::Cancellation}.
     *
     * @param int|string $rpcId the id exactly as the client sent it: `1` is not `"1"`
     *
     * @throws Exception\InvalidArgument
     */
    public function isCancelled(int|string $rpcId): bool
    {
        try {
            return $this->driver->isCancelled($this->token, $rpcId);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }

    /** Renews the lease, as every other operation of the owner does. */
    public function renew(): void
    {
        try {
            $this->driver->renew($this->token);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }

    /**
     * Ends the owner and drops the messages and requests that it has not delivered or claimed (G11). Returns null if
     * the owner had already ended.
     */
    public function detach(): ?Detached
    {
        try {
            $detached = $this->driver->detach($this->token);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }

        return $detached === null ? null : new Detached($detached['dropped'], $detached['abandoned']);
    }

    /**
     * @param list<array{int, string, string}> $rows
     *
     * @return list<OutgoingMessage>
     */
    private function messages(array $rows): array
    {
        $messages = [];

        foreach ($rows as [$sequence, $body, $context]) {
            $messages[] = new OutgoingMessage($sequence, $body, $context);
        }

        return $messages;
    }
}
