<?php

/**
 * Stubs of the extension `mcp_state`, on which the Composer library is built. Applications use `McpState\Store`.
 *
 * Every call is one transaction on one session (docs/design.md, section 4). Durations are in milliseconds, sizes in
 * bytes. Messages and payloads are UTF-8 text, and attribute values are JSON text. A call that fails throws
 * {@see Failure}, whose code is the number of the kind of failure.
 */

namespace McpState\Native;

/**
 * The version of this API, which the Composer library checks. It changes when a signature or a number below changes.
 */
const API_VERSION = 1;

/** The version of the extension, from `Cargo.toml`. */
const VERSION = '0.1.0';

/** The kinds of {@see Failure}, as returned by `getCode()`. The C library uses the same numbers for its status. */
final class FailureKind
{
    public const INVALID_ARGUMENT = 1;
    public const INVALID_DSN = 2;
    public const LIMIT_EXCEEDED = 3;
    public const SESSION_NOT_FOUND = 4;
    public const OWNER_EXPIRED = 5;
    public const STORE_UNAVAILABLE = 6;
    public const STORE_FULL = 7;
    public const STORE_INCOMPATIBLE = 8;
    public const STORE_CORRUPT = 9;
    public const OUTCOME_UNKNOWN = 10;
    public const INTERNAL = 11;
}

/** A failure of the engine. The Composer library turns it into the matching `McpState\Exception\*`. */
final class Failure extends \RuntimeException
{
    /** For LIMIT_EXCEEDED the name of the limit, as in the DSN (`max_message_bytes`); otherwise empty. */
    public string $limit = '';
    /** For LIMIT_EXCEEDED the highest value that the limit allows. */
    public int $maximum = 0;
    /** For LIMIT_EXCEEDED the value that would have exceeded the limit. */
    public int $actual = 0;
}

/** A store, which each process opens only once for each DSN. */
final class Engine
{
    /**
     * Opens the store that $dsn names. If $dsn is null, the ini setting `mcp_state.dsn` names it.
     *
     * @throws Failure
     */
    public static function open(#[\SensitiveParameter] ?string $dsn = null): Engine {}

    /** Returns the DSN of the store without passwords. */
    public function dsn(): string {}

    /**
     * Creates a session; null if a session with this $id exists. For a null $id, the session receives a random UUID v4.
     * For a null $ttlMs, it has the store's `ttl_ms`.
     *
     * @throws Failure
     */
    public function createSession(?string $id = null, ?int $ttlMs = null, ?string $principal = null): ?Session {}

    /**
     * Returns the session with this $id if it exists and belongs to $principal or to nobody (G12), otherwise null.
     *
     * @throws Failure
     */
    public function openSession(string $id, ?string $principal = null): ?Session {}

    /**
     * Returns the waiting room, whose owners are the exchanges that wait for their clients. Returns null if neither
     * $places nor the store's `max_waiting` sets a limit.
     *
     * @throws Failure
     */
    public function waitingRoom(?int $places = null): ?Session {}

    /**
     * Collects at most $limit expired sessions, and releases the dead owners in the sessions that it visits (G11).
     *
     * @return array{sessions: int, owners: int, more: bool}
     * @throws Failure
     */
    public function collect(int $limit = 100): array {}

    /**
     * Returns the store's contents in numbers, its counters, its limits and its place.
     *
     * @return array{
     *     sessions: int,
     *     used_bytes: int,
     *     limit_bytes: int,
     *     waiting: int,
     *     max_waiting: int,
     *     counters: array<string, int>,
     *     limits: array<string, int>,
     *     place: array<string, string>,
     * }
     * @throws Failure
     */
    public function stats(): array {}

    /**
     * Appends $message to the ring of $topic and returns its number. The numbers of one topic rise by one.
     *
     * @throws Failure
     */
    public function publish(string $topic, string $message): int {}

    /** Returns the number of the newest message of $topic, or 0 if there is none. @throws Failure */
    public function cursor(string $topic): int {}

    /**
     * Returns the messages of $topic that follow $cursor, oldest first. `missed` is the number of messages that the
     * ring has already dropped.
     *
     * @return array{messages: list<array{int, string}>, cursor: int, missed: int}
     * @throws Failure
     */
    public function since(string $topic, int $cursor, int $max = 100): array {}

    /**
     * Waits at most one second, and at most $waitMs, for a message of $topic that follows $cursor (G9).
     *
     * @return bool whether there is one
     * @throws Failure
     */
    public function waitSince(string $topic, int $cursor, int $waitMs): bool {}

    /** Returns true for the first use of $key within $ttlMs, and false for all others. @throws Failure */
    public function consumeOnce(string $key, int $ttlMs): bool {}
}

/**
 * A session as one process holds it: its id, incarnation and principal. After the session was destroyed, has expired or
 * was evicted, every operation fails with SESSION_NOT_FOUND, even if a new session has taken the id (G7).
 *
 * $owner is always a token that {@see attach()} returned. Operations of a released owner fail with OWNER_EXPIRED.
 */
final class Session
{
    public const OWNER_STREAM = 1;
    public const OWNER_REPLY = 2;

    public const INTEREST_RESOLUTION = 1;
    public const INTEREST_MESSAGE = 2;
    public const INTEREST_CANCELLATION = 4;

    public const WAIT_READY = 1;
    /** The slice or $waitMs ended without an event of interest. */
    public const WAIT_DEADLINE = 2;
    public const WAIT_DESTROYED = 3;
    /** A signal arrived. PHP handles it now; call `wait()` again afterwards. */
    public const WAIT_INTERRUPTED = 4;

    public const CLAIM_ANSWERED = 1;
    public const CLAIM_WAITING = 2;
    public const CLAIM_TIMED_OUT = 3;
    public const CLAIM_CANCELLED = 4;
    public const CLAIM_NOT_OWNER = 5;
    public const CLAIM_UNKNOWN = 6;

    public const DELIVERED = 0;
    public const LATE_UNKNOWN = 1;
    public const LATE_FINISHED = 2;
    public const LATE_TIMED_OUT = 3;
    public const LATE_ALREADY_ANSWERED = 4;
    public const LATE_CANCELLED = 5;
    public const LATE_ABANDONED = 6;

    public const CANCEL_CANCELLED = 1;
    public const CANCEL_UNKNOWN = 2;
    public const CANCEL_AMBIGUOUS = 3;
    public const CANCEL_ALREADY_ANSWERED = 4;
    public const CANCEL_TIMED_OUT = 5;
    public const CANCEL_NOT_OWNER = 6;
    public const CANCEL_ALREADY_CANCELLED = 7;

    public const POLICY_ISOLATE = 1;
    public const POLICY_REJECT = 2;

    public function id(): string {}

    /** Renews the session's expiry; false if the session has ended. @throws Failure */
    public function touch(): bool {}

    /** Ends the session for good (G7); false if it had already ended. @throws Failure */
    public function destroy(): bool {}

    /**
     * Returns the session's counts, ages and sizes, and its number of late responses by reason.
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
     * @throws Failure
     */
    public function stats(): array {}

    /**
     * Attaches an owner and returns its token (32 hexadecimal digits). It ends no later than this PHP request. @throws
     * Failure
     */
    public function attach(int $kind, ?int $leaseMs = null): string {}

    /** Renews the owner's lease. @throws Failure */
    public function renew(string $owner): void {}

    /**
     * Ends the owner; null if it had already ended.
     *
     * @return array{dropped: int, abandoned: int}|null
     * @throws Failure
     */
    public function detach(string $owner): ?array {}

    /** Returns the JSON text of the value under the dotted $key; null if there is none. @throws Failure */
    public function get(string $key): ?string {}

    /** Returns all attributes as the JSON text of one object. @throws Failure */
    public function all(): string {}

    /** Stores the JSON text as the value under $key, in place of all values below it. @throws Failure */
    public function set(string $key, string $json): void {}

    /** Removes the value under $key; false if there was none. @throws Failure */
    public function remove(string $key): bool {}

    /** Removes the value under $key and returns it; null if there was none. @throws Failure */
    public function take(string $key): ?string {}

    /** Stores $json if $key has no value or null, and tells whether it did. @throws Failure */
    public function putIfAbsent(string $key, string $json): bool {}

    /**
     * Stores $json (null: removes the value) if the value under $key equals $expected as JSON (null: if there is none
     * or it is null), and tells whether it did.
     *
     * @throws Failure
     */
    public function compareAndSet(string $key, ?string $expected, ?string $json): bool {}

    /**
     * Applies all changes in order in one transaction. A JSON text sets the value, and null removes it.
     *
     * @param list<array{string, ?string}> $changes
     * @throws Failure
     */
    public function patch(array $changes): void {}

    /** Queues a message and returns its sequence number among the owner's messages. @throws Failure */
    public function enqueueOutgoing(string $owner, string $message, string $context = ''): int {}

    /**
     * Removes the owner's next messages and returns them.
     *
     * @return list<array{int, string, string}> sequence number, message, context
     * @throws Failure
     */
    public function takeOutgoing(string $owner, int $max = 100): array {}

    /**
     * Returns the owner's next messages and keeps them until {@see acknowledge()}.
     *
     * @return list<array{int, string, string}> sequence number, message, context
     * @throws Failure
     */
    public function peekOutgoing(string $owner, int $max = 100): array {}

    /** Removes the messages up to and including sequence number $upTo, and returns their number. @throws Failure */
    public function acknowledge(string $owner, int $upTo): int {}

    /**
     * Queues a broadcast, which one stream owner takes, and returns its number among the broadcasts. @throws Failure
     */
    public function enqueueBroadcast(string $message, string $context = ''): int {}

    /** Returns an integer that no other request of this session has (G5). @throws Failure */
    public function nextRequestId(): int {}

    /**
     * Registers a pending request and returns the milliseconds until its deadline; null if $id is taken. For a null
     * $timeoutMs, the request has the store's `request_timeout_ms`.
     *
     * @throws Failure
     */
    public function registerPending(string $owner, int $id, ?int $timeoutMs = null, string $method = ''): ?int {}

    /**
     * Gives $message (a JSON object without `id`) an id, registers the pending request and queues the message, in one
     * transaction. For a null $timeoutMs, the request has the store's `request_timeout_ms`.
     *
     * @return int the id
     * @throws Failure
     */
    public function sendRequest(string $owner, string $message, ?int $timeoutMs = null, string $context = ''): int {}

    /** Delivers a client's response (G4). Returns DELIVERED or LATE_*. @throws Failure */
    public function deliverResponse(int $id, string $payload): int {}

    /**
     * Claims the request (G2). Returns CLAIM_*, the payload for CLAIM_ANSWERED, and the milliseconds left for
     * CLAIM_WAITING.
     *
     * @return array{int, ?string, ?int}
     * @throws Failure
     */
    public function claim(string $owner, int $id): array {}

    /**
     * Removes the owner's next resolved request and returns its id, CLAIM_* and payload; null if none is resolved.
     *
     * @return array{int, int, ?string}|null
     * @throws Failure
     */
    public function claimAny(string $owner): ?array {}

    /**
     * Removes the owner's requests whose deadline has passed, and returns their ids.
     *
     * @return list<int>
     * @throws Failure
     */
    public function resolveTimeouts(string $owner): array {}

    /**
     * Cancels a pending request. Returns CANCEL_CANCELLED, _UNKNOWN, _ALREADY_ANSWERED, _TIMED_OUT, _ALREADY_CANCELLED
     * or _NOT_OWNER.
     *
     * @throws Failure
     */
    public function cancelPending(string $owner, int $id): int {}

    /**
     * Lists the owner's pending requests: id, the CLAIM_* that a claim would return now, milliseconds left (0 unless
     * waiting), method.
     *
     * @return list<array{int, int, int, string}>
     * @throws Failure
     */
    public function pending(string $owner): array {}

    /**
     * Lists the pending requests of all owners, in the form of {@see pending()}.
     *
     * @return list<array{int, int, int, string}>
     * @throws Failure
     */
    public function allPending(): array {}

    /** Returns the payload of the owner's answered request $id without claiming it, otherwise null. @throws Failure */
    public function peekResponse(string $owner, int $id): ?string {}

    /**
     * Waits for one slice of at most one second and at most $waitMs, for an event of $interest (a sum of INTEREST_*)
     * that is newer than $after (G9). The second number is the next $after.
     *
     * @return array{int, int} WAIT_*, cursor
     * @throws Failure
     */
    public function wait(string $owner, int $interest, int $after, int $waitMs): array {}

    /**
     * Registers an in-flight request (G6). Returns false if its id is in flight and the policy is POLICY_REJECT.
     * @throws Failure
     */
    public function beginRequest(string $owner, int|string $id, int $policy = self::POLICY_ISOLATE): bool {}

    /** Ends an in-flight request, and tells whether it was cancelled; null if it was not in flight. @throws Failure */
    public function finishRequest(string $owner, int|string $id): ?bool {}

    /** Tells whether the client cancelled this request of the owner. @throws Failure */
    public function isCancelled(string $owner, int|string $id): bool {}

    /** Cancels an in-flight request. Returns CANCEL_CANCELLED, _UNKNOWN or _AMBIGUOUS. @throws Failure */
    public function cancelRequest(int|string $id): int {}
}
