<?php

declare(strict_types=1);

namespace McpState;

use McpState\Internal\FailureKind;
use McpState\Internal\Json;

/**
 * One exchange being served: the HTTP request, stream or fiber that delivers messages to the client.
 *
 * What is queued, asked or begun here is this owner's alone (G3): no other stream takes its messages, claims its
 * answers or sees its timeouts.
 *
 * Every operation throws {@see Exception\OwnerExpired} once the owner has ended (see {@see Session::attach()}) and
 * {@see Exception\SessionNotFound} once the session is gone.
 */
final class Owner
{
    /** @internal Use {@see Session::attach()} and {@see Session::owner()}. */
    public function __construct(
        public readonly Session $session,
        private readonly Native\Session|Ffi\Session $driver,
        /** Names the owner: opaque, unique, not guessable. */
        public readonly string $token,
    ) {
    }

    /**
     * Queues a message to the client.
     *
     * @param string|array<array-key, mixed> $message a JSON-RPC message
     * @param string                         $context kept with the message, for whoever sends it
     *
     * @return int its sequence number among the owner's messages
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
     * Removes at most $max messages from the queue, in order, to be sent now: at most once, since a process that dies
     * before it has written them takes them along. A stream also gets the session's broadcasts.
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
     * The same messages, kept until {@see acknowledge()}: at least once. Broadcasts are this owner's from here on, and
     * return to the session if it ends without acknowledging them.
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
     * Removes the messages up to and with sequence number $upTo.
     *
     * @return int how many
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
     * Asks the client something: gives $message an id, registers it as pending and queues it, all at once. Send what
     * {@see takeOutgoing()} gives, then {@see PendingRequest::await()} the answer.
     *
     * @param string|array<array-key, mixed> $message   a JSON-RPC request without `id`
     * @param int|null                       $timeoutMs milliseconds after which the request times out and its answer
     *                                                  is late; null: the store's `request_timeout_ms`
     * @param string                         $context   kept with the message, for whoever sends it
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
     * Registers a request to the client that is sent by other means.
     *
     * @param int      $id        best from {@see Session::nextRequestId()}
     * @param int|null $timeoutMs milliseconds after which it times out; null: the store's `request_timeout_ms`
     * @param string   $method    for display: at most 128 bytes
     *
     * @throws Exception\DuplicateRequestId when the session has a pending request with this id
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
                "a pending request of this session has the id $id already; nextRequestId() gives one that is free"
            );
        }

        return new PendingRequest($this, $this->driver, $id);
    }

    /** The pending request with this id. Asks nothing of the store: {@see PendingRequest::claim()} tells. */
    public function pendingRequest(int $id): PendingRequest
    {
        return new PendingRequest($this, $this->driver, $id);
    }

    /**
     * This owner's pending requests.
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
     * Claims this owner's next resolved request, answered, timed out or cancelled; null when none is. For loops that
     * serve several requests at once.
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
     * Waits for something of interest that is newer than $after: one slice, at most $waitMs and at most one second. It
     * sleeps until another process wakes it; nothing is polled (G9). Call it in a loop with the result's cursor:
     *
     *     $after = 0;
     *     do {
     *         $result = $owner->wait(1000, $after, Interest::Message);
     *         $after = $result->cursor;
     *         // send $owner->takeOutgoing(), or a keep-alive
     *     } while ($result->status !== WaitStatus::Destroyed);
     *
     * @param int      $after       the cursor of the last result for the same interest; 0: whatever is there counts
     * @param Interest ...$interest none: all of them
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
     * Says that this owner serves the client's request with this JSON-RPC id. Requests in flight with equal ids keep
     * their own answers (G6).
     *
     * @param int|string $rpcId as the client sent it: `1` is not `"1"`
     *
     * @return bool false: the id is in flight and the policy is Reject
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
     * Says that the client's request has been served.
     *
     * @return bool|null whether the client cancelled it meanwhile; null when this owner had no such request in flight
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
     * Whether the client has cancelled this in-flight request. A wait can hear of it: {@see Interest::Cancellation}.
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

    /** Ends the owner now and drops what it has not delivered or claimed; null when it had ended before. */
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
