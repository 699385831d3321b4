<?php

/**
 * Stubs of the extension `mcp_state`: what the Composer library builds on. Internal; use `McpState\Store`.
 *
 * Every call is one transaction on one session (docs/design.md, section 4) or a read of it. Durations are milliseconds,
 * sizes bytes, messages and payloads are UTF-8 text, attribute values are JSON text. A failure is thrown as
 * {@see Failure}, with the number of its kind as the code.
 */

namespace McpState\Native;

/** The number the Composer library checks: it changes when a signature or a number below changes. */
const API_VERSION = 1;

/** The version of the extension, as in `Cargo.toml`. */
const VERSION = '0.1.0';

/** Kinds of {@see Failure}: `getCode()`. The same numbers are the C library's status numbers. */
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

/** Any failure of the engine. The library turns it into the matching `McpState\Exception\*`. */
final class Failure extends \RuntimeException
{
    /** The limit's name for LIMIT_EXCEEDED, as in the DSN (`max_message_bytes`), else ''. */
    public string $limit = '';
    /** The limit, for LIMIT_EXCEEDED. */
    public int $maximum = 0;
    /** The value that would have passed it, for LIMIT_EXCEEDED. */
    public int $actual = 0;
}

/** A store, opened once for each process and DSN. */
final class Engine
{
    /**
     * Opens the store that $dsn names, or the ini setting `mcp_state.dsn` when it is null.
     *
     * @throws Failure
     */
    public static function open(#[\SensitiveParameter] ?string $dsn = null): Engine {}

    /** The DSN in use, without passwords. */
    public function dsn(): string {}

    /**
     * Creates a session; null when $id is taken. A null $id is chosen at random (UUID v4); a null $ttlMs is the store's.
     *
     * @throws Failure
     */
    public function createSession(?string $id = null, ?int $ttlMs = null, ?string $principal = null): ?Session {}

    /**
     * The session named $id if it exists, has not expired, and belongs to $principal (or to nobody), else null.
     *
     * @throws Failure
     */
    public function openSession(string $id, ?string $principal = null): ?Session {}

    /**
     * The waiting room, to which each exchange that waits for its client attaches; null when neither $places nor the
     * store's `max_waiting` limits it.
     *
     * @throws Failure
     */
    public function waitingRoom(?int $places = null): ?Session {}

    /**
     * Collects at most $limit expired sessions, and releases the dead owners met on the way.
     *
     * @return array{sessions: int, owners: int, more: bool}
     * @throws Failure
     */
    public function collect(int $limit = 100): array {}

    /**
     * Counters and limits of the store.
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
     * Appends $message to the ring of $topic and returns its number; numbers of one topic rise by one.
     *
     * @throws Failure
     */
    public function publish(string $topic, string $message): int {}

    /** The number of the newest message of $topic, 0 when there is none. @throws Failure */
    public function cursor(string $topic): int {}

    /**
     * Messages of $topic after $cursor, oldest first. `missed` counts the ones the ring has dropped already.
     *
     * @return array{messages: list<array{int, string}>, cursor: int, missed: int}
     * @throws Failure
     */
    public function since(string $topic, int $cursor, int $max = 100): array {}

    /**
     * Waits for at most one second, and at most $waitMs, for a message of $topic after $cursor.
     *
     * @return bool whether there is one
     * @throws Failure
     */
    public function waitSince(string $topic, int $cursor, int $waitMs): bool {}

    /** True the first time $key is seen within $ttlMs, false afterwards. @throws Failure */
    public function consumeOnce(string $key, int $ttlMs): bool {}
}

/**
 * A session as one process holds it: its id, incarnation and principal. Every operation of a session that was destroyed,
 * expired or evicted fails with SESSION_NOT_FOUND, also when a new session has taken the id (G7).
 *
 * $owner is always a token that {@see attach()} returned; an owner that was released fails with OWNER_EXPIRED.
 */
final class Session
{
    public const OWNER_STREAM = 1;
    public const OWNER_REPLY = 2;

    public const INTEREST_RESOLUTION = 1;
    public const INTEREST_MESSAGE = 2;
    public const INTEREST_CANCELLATION = 4;

    public const WAIT_READY = 1;
    /** The slice or $waitMs ended with nothing of interest. */
    public const WAIT_DEADLINE = 2;
    public const WAIT_DESTROYED = 3;
    /** A signal arrived: let PHP handle it and wait again. */
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

    /** Renews the session's expiry; false when it no longer exists. @throws Failure */
    public function touch(): bool {}

    /** Ends the session for good; false when it no longer existed. @throws Failure */
    public function destroy(): bool {}

    /**
     * Counts, ages, and late responses by reason.
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

    /** A new owner's token (32 hexadecimal digits). It ends at the end of this PHP request at the latest. @throws Failure */
    public function attach(int $kind, ?int $leaseMs = null): string {}

    /** Renews the owner's lease. @throws Failure */
    public function renew(string $owner): void {}

    /**
     * Ends the owner; null when it had ended already.
     *
     * @return array{dropped: int, abandoned: int}|null
     * @throws Failure
     */
    public function detach(string $owner): ?array {}

    /** The JSON text of the value under the dotted $key, null when absent. @throws Failure */
    public function get(string $key): ?string {}

    /** All attributes as the JSON text of one object. @throws Failure */
    public function all(): string {}

    /** @throws Failure */
    public function set(string $key, string $json): void {}

    /** Whether there was something to remove. @throws Failure */
    public function remove(string $key): bool {}

    /** The value, removed. @throws Failure */
    public function take(string $key): ?string {}

    /** Whether $json was put: false when $key had a value that is not null. @throws Failure */
    public function putIfAbsent(string $key, string $json): bool {}

    /** Whether $key held $expected (null: was absent or null), as JSON values, and now holds $json (null: is removed). @throws Failure */
    public function compareAndSet(string $key, ?string $expected, ?string $json): bool {}

    /**
     * Applies all changes at once, in order: JSON text sets, null removes.
     *
     * @param list<array{string, ?string}> $changes
     * @throws Failure
     */
    public function patch(array $changes): void {}

    /** The message's sequence number among the owner's. @throws Failure */
    public function enqueueOutgoing(string $owner, string $message, string $context = ''): int {}

    /** @return list<array{int, string, string}> sequence number, message, context; removed @throws Failure */
    public function takeOutgoing(string $owner, int $max = 100): array {}

    /** @return list<array{int, string, string}> sequence number, message, context; kept @throws Failure */
    public function peekOutgoing(string $owner, int $max = 100): array {}

    /** How many messages up to and with sequence number $upTo were removed. @throws Failure */
    public function acknowledge(string $owner, int $upTo): int {}

    /** Queues a message for whichever stream owner takes it first; its number among the broadcasts. @throws Failure */
    public function enqueueBroadcast(string $message, string $context = ''): int {}

    /** An integer no other request of this session has. @throws Failure */
    public function nextRequestId(): int {}

    /**
     * Registers a pending request; null when $id is taken, else the time left in milliseconds. Without $timeoutMs it
     * has the store's `request_timeout_ms`.
     *
     * @throws Failure
     */
    public function registerPending(string $owner, int $id, ?int $timeoutMs = null, string $method = ''): ?int {}

    /**
     * Gives $message (a JSON object without `id`) an id, registers it and queues it, all at once. Without $timeoutMs
     * it waits for the store's `request_timeout_ms`.
     *
     * @return int the id
     * @throws Failure
     */
    public function sendRequest(string $owner, string $message, ?int $timeoutMs = null, string $context = ''): int {}

    /** DELIVERED or LATE_*. @throws Failure */
    public function deliverResponse(int $id, string $payload): int {}

    /**
     * CLAIM_*; the payload of CLAIM_ANSWERED; the milliseconds left of CLAIM_WAITING.
     *
     * @return array{int, ?string, ?int}
     * @throws Failure
     */
    public function claim(string $owner, int $id): array {}

    /**
     * The owner's next resolved request, removed: id, CLAIM_*, payload. Null when none is.
     *
     * @return array{int, int, ?string}|null
     * @throws Failure
     */
    public function claimAny(string $owner): ?array {}

    /** @return list<int> ids of the owner's requests whose deadline passed; removed @throws Failure */
    public function resolveTimeouts(string $owner): array {}

    /** CANCEL_CANCELLED, _UNKNOWN, _ALREADY_ANSWERED, _TIMED_OUT, _ALREADY_CANCELLED or _NOT_OWNER. @throws Failure */
    public function cancelPending(string $owner, int $id): int {}

    /**
     * The owner's pending requests: id, CLAIM_* as a claim would say now, milliseconds left (0 unless waiting), method.
     *
     * @return list<array{int, int, int, string}>
     * @throws Failure
     */
    public function pending(string $owner): array {}

    /**
     * All pending requests of the session, whoever owns them; the same shape as {@see pending()}.
     *
     * @return list<array{int, int, int, string}>
     * @throws Failure
     */
    public function allPending(): array {}

    /** The payload of the owner's answered request $id without claiming it, else null. @throws Failure */
    public function peekResponse(string $owner, int $id): ?string {}

    /**
     * One slice of waiting: at most one second and at most $waitMs, for something of $interest (INTEREST_*, added up)
     * newer than $after. The second number is the new $after.
     *
     * @return array{int, int} WAIT_*, cursor
     * @throws Failure
     */
    public function wait(string $owner, int $interest, int $after, int $waitMs): array {}

    /** False: a request with this id is in flight and the policy is POLICY_REJECT. @throws Failure */
    public function beginRequest(string $owner, int|string $id, int $policy = self::POLICY_ISOLATE): bool {}

    /** Whether the request was cancelled while in flight; null when it was not in flight. @throws Failure */
    public function finishRequest(string $owner, int|string $id): ?bool {}

    /** Whether the client cancelled this request of the owner. @throws Failure */
    public function isCancelled(string $owner, int|string $id): bool {}

    /** CANCEL_CANCELLED, _UNKNOWN or _AMBIGUOUS. @throws Failure */
    public function cancelRequest(int|string $id): int {}
}
