<?php

declare(strict_types=1);

namespace McpState;

use McpState\Internal\FailureKind;
use McpState\Internal\Json;

/**
 * One MCP session as this process sees it. Nothing is kept here: each call asks the store, so two objects for one
 * session, in whatever processes, always agree.
 *
 * **Gone is gone** (G7). Once the session was destroyed, expired or was evicted, every operation throws
 * {@see Exception\SessionNotFound}, also when a new session has taken the id. Only `touch()` and `destroy()` answer
 * false instead.
 *
 * **Attributes** are values under dotted keys, for anything `json_encode` takes. `get('client')` assembles everything
 * stored under `client.…`; `set('client', …)` replaces it all; `set('client.name', …)` changes just that and never
 * disturbs keys it does not name. Each call is atomic; get-then-set is not, use {@see update()}. Values come back as
 * JSON brings them: objects as associative arrays. A value of null counts as absent, as for `isset()` and `??`.
 * A key is at most 255 bytes of UTF-8 without control characters, and no part between the dots is empty.
 *
 * **Owners** ({@see attach()}) hold what belongs to one exchange: its outgoing messages and its requests to the client.
 */
final class Session
{
    /** How often {@see update()} tries. Each time it fails another process has succeeded. */
    private const UPDATE_ATTEMPTS = 1000;

    /** As the client sends it in `Mcp-Session-Id`. */
    public readonly string $id;

    /** @internal Use {@see Store::createSession()} and {@see Store::openSession()}. */
    public function __construct(private readonly Native\Session|Ffi\Session $driver, ?string $id = null)
    {
        $this->id = $id ?? $driver->id();
    }

    /** Says that the session is in use, which puts off its expiry; false when it is gone. */
    public function touch(): bool
    {
        try {
            return $this->driver->touch();
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }

    /** Ends the session for good (G7) and wakes everybody who waits on it; false when it was gone already. */
    public function destroy(): bool
    {
        try {
            return $this->driver->destroy();
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }

    /**
     * What the session holds, its age, and how many answers came late, by reason.
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
     * Starts an owner for the exchange this PHP request serves.
     *
     * It ends with {@see Owner::detach()}, at the latest when the PHP request ends, fatal errors included, or when the
     * process dies. What it has not delivered or claimed by then is dropped (G11).
     *
     * @param int|null $leaseMs how long a silent owner of a dead process is kept; null: the store's `lease_ms`. Every
     *                          operation of the owner renews it. An owner whose process lives outlasts its lease
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
     * The owner with this token, which {@see attach()} made earlier. Asks nothing of the store: if the owner has ended,
     * its operations throw {@see Exception\OwnerExpired}.
     */
    public function owner(string $token): Owner
    {
        return new Owner($this, $this->driver, $token);
    }

    /**
     * The value under $key, or $default when there is none.
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
     * Whether there is a value under $key, as `isset()` would say.
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
     * All attributes as one snapshot, nested by the parts of their keys.
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
     * Stores $value under $key; what was under `$key.…` is replaced, everything else is left alone.
     *
     * @throws Exception\SessionNotFound
     * @throws Exception\LimitExceeded when the attributes grow too large
     * @throws Exception\InvalidArgument for a bad key, a value that JSON cannot express (such as invalid UTF-8), or one
     *         that is nested more than 100 deep, the segments of $key included
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
     * Removes what is under $key; false when there was nothing.
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
     * Removes the value under $key and returns it: of several callers exactly one gets it. $default when there is none.
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
     * Stores $value if there is none under $key: of several callers exactly one succeeds.
     *
     * @return bool whether it was stored
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
     * Removes and sets several keys at once; nobody sees a state in between. Removals come first, then the values in
     * the order given, so `patch(['a.b' => 1], ['a'])` leaves `a` with nothing but `b`.
     *
     * @param array<array-key, mixed> $set    values by key
     * @param list<string>            $remove keys
     *
     * @throws Exception\SessionNotFound
     * @throws Exception\LimitExceeded then nothing was changed
     * @throws Exception\InvalidArgument then nothing was changed
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
     * Stores $value if the value under $key is $expected, compared as JSON values (the order of an object's keys does
     * not matter). Null stands for "no value" on both sides: an expected null means absent, a $value of null removes.
     *
     * @return bool whether it was stored
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
     * Replaces the value under $key by what $fn makes of it, without losing anybody's update (G1).
     *
     * $fn runs outside any lock. When another process changed the value meanwhile it runs again on the new value, so it
     * should do nothing but compute. Null, given or returned, means "no value".
     *
     *     $count = $session->update('visits', fn (?int $n) => ($n ?? 0) + 1);
     *
     * @template T
     *
     * @param \Closure(mixed): T $fn
     *
     * @return T what was stored
     *
     * @throws Exception\UpdateConflict when others were faster a thousand times in a row
     * @throws Exception\SessionNotFound
     * @throws Exception\LimitExceeded
     * @throws Exception\InvalidArgument
     */
    public function update(string $key, \Closure $fn): mixed
    {
        try {
            for ($attempt = 0; $attempt < self::UPDATE_ATTEMPTS; ++$attempt) {
                // Many writers of one value take turns better when the losers step back for a moment.
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
            "the value under \"$key\" was changed by others before each of " . self::UPDATE_ATTEMPTS . ' attempts'
        );
    }

    /**
     * Queues a message that no exchange owns (a notification from a queue worker, say) for whichever stream owner takes
     * it first: exactly one of them sends it, a plain reply never does.
     *
     * @param string|array<array-key, mixed> $message a JSON-RPC message
     * @param string                         $context kept with the message, for whoever sends it
     *
     * @return int its number among the session's broadcasts
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
     * An integer that no other request to the client of this session has (G5), whichever process asks.
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
     * Hands a client's answer to the request it answers and wakes the owner that waits for it. An answer that matches
     * no waiting request is discarded, and the reason says why (G4).
     *
     * @param mixed                          $id      as the client sent it. Ids of requests to the client are integers,
     *                                                so any other type is unknown: `"7"` is not `7`
     * @param string|array<array-key, mixed> $payload the answer
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
     * Outcomes: Cancelled, Unknown, Ambiguous.
     *
     * @param int|string $rpcId as the client sent it: `1` is not `"1"`
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
     * The pending requests of all owners.
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
