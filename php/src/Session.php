<?php

declare(strict_types=1);

namespace McpState;

use McpState\Internal\FailureKind;
use McpState\Internal\Json;

/**
 * One MCP session. An object holds no state of the session: each call reads the store, so all objects for one session
 * agree, in all processes.
 *
 * **The end of a session is final** (G7). Once the session was destroyed, has expired or was evicted, every operation
 * throws {@see Exception\SessionNotFound}, even if a new session has taken the id. Only `touch()` and `destroy()`
 * return false instead.
 *
 * **Attributes** are values under dotted keys. A value is anything that `json_encode` accepts. `get('client')`
 * assembles all values stored under `client.…`. `set('client', …)` replaces all of them. `set('client.name', …)`
 * changes only that value and never disturbs keys that it does not name. Each call is atomic, but `get()` followed by
 * `set()` is not: use {@see update()}. Values return as decoded JSON, with objects as associative arrays. A null value
 * counts as absent, as in `isset()` and `??`. A key has at most 255 bytes of UTF-8 without control characters, and no
 * segment between its dots is empty.
 *
 * **Owners** ({@see attach()}) hold the outgoing messages and pending requests of one exchange.
 */
final class Session
{
    /** The number of attempts of {@see update()}. Each failed attempt means that another process has succeeded. */
    private const UPDATE_ATTEMPTS = 1000;

    /** The id that the client sends in `Mcp-Session-Id`. */
    public readonly string $id;

    /** @internal Use {@see Store::createSession()} and {@see Store::openSession()}. */
    public function __construct(private readonly Native\Session|Ffi\Session $driver, ?string $id = null)
    {
        $this->id = $id ?? $driver->id();
    }

    /** Renews the session's expiry; false if the session has ended. */
    public function touch(): bool
    {
        try {
            return $this->driver->touch();
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }

    /** Ends the session for good (G7) and wakes all owners that wait on it; false if the session had already ended. */
    public function destroy(): bool
    {
        try {
            return $this->driver->destroy();
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }

    /**
     * Returns the session's counts, ages in milliseconds and sizes in bytes, and its number of late responses by
     * reason.
     *
     * @return array{
     *     id: string,
     *     age_ms: int,
     *     idle_ms: int,
     *     ttl_ms: int,
     *     owners: int,
     *     exchanges: int,
     *     pending: int,
     *     in_flight: int,
     *     queued: int,
     *     broadcasts: int,
     *     message_bytes: int,
     *     attribute_bytes: int,
     *     late: array<string, int>,
     * }
     *
     * @throws Exception\SessionNotFound
     */
    public function stats(): array
    {
        try {
            return $this->driver->stats();
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }

    /**
     * Attaches a new owner for the exchange that this PHP request serves.
     *
     * The owner ends with {@see Owner::detach()}, or when the PHP request ends (also by a fatal error), or when its
     * process dies. Its undelivered messages and unclaimed requests are dropped then (G11).
     *
     * @param OwnerKind $kind    whether the owner can also deliver broadcasts
     * @param int|null  $leaseMs milliseconds that the store keeps a silent owner whose process died; null: the store's
     *                           `lease_ms`. Every operation of the owner renews the lease. An owner whose process lives
     *                           outlasts its lease
     *
     * @throws Exception\SessionNotFound
     * @throws Exception\LimitExceeded
     * @throws Exception\InvalidArgument
     */
    public function attach(OwnerKind $kind = OwnerKind::Stream, ?int $leaseMs = null): Owner
    {
        try {
            return new Owner($this, $this->driver, $this->driver->attach($kind->value, $leaseMs));
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }

    /**
     * Returns the owner with this token, which {@see attach()} created earlier. This method does not access the store:
     * if the owner has ended, its operations throw {@see Exception\OwnerExpired}.
     */
    public function owner(string $token): Owner
    {
        return new Owner($this, $this->driver, $token);
    }

    /**
     * Returns the value under $key, or $default if there is none.
     *
     * @throws Exception\SessionNotFound
     * @throws Exception\InvalidArgument
     */
    public function get(string $key, mixed $default = null): mixed
    {
        try {
            $json = $this->driver->get($key);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }

        return $json === null ? $default : Json::decode($json) ?? $default;
    }

    /**
     * Tells whether $key has a value, with the meaning of `isset()`.
     *
     * @throws Exception\SessionNotFound
     * @throws Exception\InvalidArgument
     */
    public function has(string $key): bool
    {
        try {
            $json = $this->driver->get($key);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }

        return $json !== null && $json !== 'null';
    }

    /**
     * Returns all attributes as one snapshot, nested by the segments of their keys.
     *
     * @return array<array-key, mixed>
     *
     * @throws Exception\SessionNotFound
     */
    public function all(): array
    {
        try {
            $json = $this->driver->all();
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }

        return (array) Json::decode($json);
    }

    /**
     * Stores $value under $key. It replaces the values under `$key.…` and leaves all others unchanged (G1).
     *
     * @throws Exception\SessionNotFound
     * @throws Exception\LimitExceeded if the attributes would exceed `max_attribute_bytes`
     * @throws Exception\InvalidArgument for a malformed key, for a value that JSON cannot express (such as invalid
     *                                   UTF-8), or for a value nested more than 100 levels deep, the segments of $key
     *                                   included
     */
    public function set(string $key, mixed $value): void
    {
        $json = Json::encode($value);

        try {
            $this->driver->set($key, $json);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }

    /**
     * Removes the value under $key; false if there was none.
     *
     * @throws Exception\SessionNotFound
     * @throws Exception\InvalidArgument
     */
    public function remove(string $key): bool
    {
        try {
            return $this->driver->remove($key);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }

    /**
     * Removes the value under $key and returns it, or $default if there is none. If several callers take the value at
     * the same time, exactly one of them receives it (G1).
     *
     * @throws Exception\SessionNotFound
     * @throws Exception\InvalidArgument
     */
    public function take(string $key, mixed $default = null): mixed
    {
        try {
            $json = $this->driver->take($key);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }

        return $json === null ? $default : Json::decode($json) ?? $default;
    }

    /**
     * Stores $value if $key has no value. If several callers try at the same time, exactly one of them succeeds (G1).
     *
     * @return bool whether this call stored the value
     *
     * @throws Exception\SessionNotFound
     * @throws Exception\LimitExceeded
     * @throws Exception\InvalidArgument
     */
    public function putIfAbsent(string $key, mixed $value): bool
    {
        $json = Json::encode($value);

        try {
            return $this->driver->putIfAbsent($key, $json);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }

    /**
     * Removes and sets several keys in one transaction, so that no reader sees a state in between. The removals come
     * first, then the values in the given order: `patch(['a.b' => 1], ['a'])` leaves only `b` under `a`.
     *
     * @param array<array-key, mixed> $set    values by key
     * @param list<string>            $remove keys
     *
     * @throws Exception\SessionNotFound
     * @throws Exception\LimitExceeded if a limit is exceeded; no key was changed
     * @throws Exception\InvalidArgument for a malformed key or value; no key was changed
     */
    public function patch(array $set, array $remove = []): void
    {
        $changes = [];

        foreach ($remove as $key) {
            $changes[] = [$key, null];
        }

        foreach ($set as $key => $value) {
            $changes[] = [(string) $key, Json::encode($value)];
        }

        try {
            $this->driver->patch($changes);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }

    /**
     * Stores $value if the value under $key equals $expected. The comparison is between JSON values, so the order of an
     * object's keys does not matter. Null means "no value": a null $expected requires that $key is absent, and a null
     * $value removes it.
     *
     * @return bool whether this call stored or removed the value
     *
     * @throws Exception\SessionNotFound
     * @throws Exception\LimitExceeded
     * @throws Exception\InvalidArgument
     */
    public function compareAndSet(string $key, mixed $expected, mixed $value): bool
    {
        $expected = $expected === null ? null : Json::encode($expected);
        $value = $value === null ? null : Json::encode($value);

        try {
            return $this->driver->compareAndSet($key, $expected, $value);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }

    /**
     * Replaces the value under $key with the result of $fn, without losing updates of other processes (G1).
     *
     * $fn runs outside of any lock. If another process changes the value meanwhile, $fn runs again with the new value,
     * so it must have no side effects. Null as argument or result means "no value".
     *
     *     $count = $session->update('visits', fn (?int $n) => ($n ?? 0) + 1);
     *
     * @template T
     *
     * @param \Closure(mixed): T $fn
     *
     * @return T the stored value
     *
     * @throws Exception\UpdateConflict if other processes changed the value before each of a thousand attempts
     * @throws Exception\SessionNotFound
     * @throws Exception\LimitExceeded
     * @throws Exception\InvalidArgument
     */
    public function update(string $key, \Closure $fn): mixed
    {
        try {
            for ($attempt = 0; $attempt < self::UPDATE_ATTEMPTS; ++$attempt) {
                // Concurrent writers of one value conflict less often if the losers pause for a moment.
                if ($attempt > 2) {
                    \usleep(\random_int(0, 50 * \min($attempt, 20)));
                }

                $current = $this->driver->get($key);
                $value = $fn($current === null ? null : Json::decode($current));

                if ($this->driver->compareAndSet($key, $current, $value === null ? null : Json::encode($value))) {
                    return $value;
                }
            }
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }

        throw new Exception\UpdateConflict(
            "other processes changed the value under \"$key\" before each of " . self::UPDATE_ATTEMPTS . ' attempts'
        );
    }

    /**
     * Queues a broadcast, for example a notification from a queue worker. Exactly one stream owner delivers it; a plain
     * reply never does.
     *
     * @param string|array<array-key, mixed> $message a JSON-RPC message
     * @param string                         $context stored with the message and returned to the code that sends it
     *
     * @return int the number of the message among the session's broadcasts
     *
     * @throws Exception\SessionNotFound
     * @throws Exception\LimitExceeded
     * @throws Exception\InvalidArgument
     */
    public function enqueueBroadcast(string|array $message, string $context = ''): int
    {
        $message = \is_string($message) ? $message : Json::encode($message);

        try {
            return $this->driver->enqueueBroadcast($message, $context);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }

    /**
     * Returns an integer that no other request to the client of this session has, across all processes (G5).
     *
     * @throws Exception\SessionNotFound
     */
    public function nextRequestId(): int
    {
        try {
            return $this->driver->nextRequestId();
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }

    /**
     * Delivers a client's response to its pending request and wakes the owner that waits for it. The store discards a
     * response that matches no waiting request, and the result gives the reason (G4).
     *
     * @param mixed                          $id      the id exactly as the client sent it. The ids of pending requests
     *                                                are integers, so any other type is unknown: `"7"` is not `7`
     * @param string|array<array-key, mixed> $payload the response
     *
     * @throws Exception\SessionNotFound
     * @throws Exception\LimitExceeded
     * @throws Exception\InvalidArgument
     */
    public function deliverResponse(mixed $id, string|array $payload): Delivery
    {
        if (!\is_int($id)) {
            return Delivery::late(LateReason::Unknown);
        }

        $payload = \is_string($payload) ? $payload : Json::encode($payload);

        try {
            $outcome = $this->driver->deliverResponse($id, $payload);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }

        return $outcome === 0 ? Delivery::delivered() : Delivery::late(LateReason::from($outcome));
    }

    /**
     * Marks the in-flight request with this JSON-RPC id as cancelled and wakes its owner (`notifications/cancelled`).
     * The possible outcomes are Cancelled, Unknown and Ambiguous.
     *
     * @param int|string $rpcId the id exactly as the client sent it: `1` is not `"1"`
     *
     * @throws Exception\SessionNotFound
     * @throws Exception\InvalidArgument
     */
    public function cancelRequest(int|string $rpcId): CancelOutcome
    {
        try {
            return CancelOutcome::from($this->driver->cancelRequest($rpcId));
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }

    /**
     * Lists the pending requests of all owners.
     *
     * @return list<PendingInfo>
     *
     * @throws Exception\SessionNotFound
     */
    public function allPending(): array
    {
        try {
            return PendingInfo::fromRows($this->driver->allPending());
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }
}
