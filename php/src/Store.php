<?php

declare(strict_types=1);

namespace McpState;

use McpState\Internal\Driver;
use McpState\Internal\FailureKind;
use McpState\Internal\Host;

/**
 * A store, which holds the sessions and is shared by all processes that open the same DSN.
 *
 *     $store = Store::open('shm://shop');
 *     $session = $store->openSession($id) ?? $store->createSession();
 *
 * The DSN is one of `shm://NAME` (shared memory of one machine), `file:///DIR` (a directory, which survives a restart
 * of the machine), `redis://HOST` (a Redis or Valkey server) and `memory://` (one process, for tests). Options follow
 * as a query: `shm://shop?ttl_ms=600000&max_sessions=500`. See docs/settings.md for all of them.
 *
 * Every operation here and on {@see Session} and {@see Owner} is one transaction: the store applies it in full or not
 * at all (G8), and concurrent operations behave as if they ran one at a time (G1). All durations are in milliseconds,
 * all sizes in bytes.
 *
 * Any operation may throw {@see Exception\StoreUnavailable} or another {@see Exception\ExceptionInterface} if the store
 * itself fails. The methods below list only the exceptions that a healthy store throws.
 */
final class Store
{
    /** The `Native\API_VERSION` that this library requires. */
    private const API_VERSION = 1;

    private function __construct(private readonly Native\Engine|Ffi\Engine $driver)
    {
    }

    /**
     * Opens the store. Each process opens a DSN only once; further calls are cheap.
     *
     * @param string|null $dsn null: the environment variable `MCP_STATE_DSN`, or without it the ini setting
     *                         `mcp_state.dsn`
     *
     * @throws Exception\BackendMissing if this PHP has neither the extension nor, through FFI, the C library in a
     *                                  version that fits; the message says what to install
     * @throws Exception\InvalidDsn
     * @throws Exception\StoreUnavailable if the store cannot be reached or opened; the message says what to do
     * @throws Exception\StoreIncompatible if the store was created by an incompatible version
     */
    public static function open(#[\SensitiveParameter] ?string $dsn = null): self
    {
        if (self::isRestricted()) {
            Host::check(Host::NEEDED);
        }

        $dsn ??= \getenv('MCP_STATE_DSN') ?: null;

        try {
            // This check of the common case avoids loading one more class in every request.
            $fits = \defined('McpState\Native\API_VERSION') && Native\API_VERSION === self::API_VERSION;

            return new self($fits ? Native\Engine::open($dsn) : Driver::open($dsn, self::API_VERSION));
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }

    /** Tells whether `disable_functions` is set. The check is here to avoid loading one more class in every request. */
    private static function isRestricted(): bool
    {
        try {
            return (string) \ini_get('disable_functions') !== '';
        } catch (\Error) {
            return true; // `ini_get` itself is disabled.
        }
    }

    /** Returns the DSN of the store without passwords. */
    public function dsn(): string
    {
        try {
            return $this->driver->dsn();
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }

    /**
     * Creates a session.
     *
     * @param string|null $id        1 to 255 visible ASCII characters; null: a random UUID
     * @param int|null    $ttlMs     milliseconds that the session lives without being used; null: the store's `ttl_ms`.
     *                               A session never expires while one of its owners lives
     * @param string|null $principal the principal that the session belongs to; for all others the session does not
     *                               exist (G12)
     *
     * @throws Exception\SessionExists if a session with this id exists; that session is unchanged
     * @throws Exception\LimitExceeded if the store or the principal has too many sessions and none can be evicted
     * @throws Exception\InvalidArgument
     */
    public function createSession(?string $id = null, ?int $ttlMs = null, ?string $principal = null): Session
    {
        try {
            $session = $this->driver->createSession($id, $ttlMs, $principal);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }

        if ($session === null) {
            // A session id is a secret, so the message shows only its beginning.
            throw new Exception\SessionExists(
                'session ' . \substr((string) $id, 0, 8) . '… exists already; without an id, a random one is chosen'
            );
        }

        return new Session($session, $id);
    }

    /**
     * Returns the session with this id, or null if it does not exist, has ended, or belongs to another principal. The
     * caller cannot tell these cases apart (G12).
     *
     * @throws Exception\InvalidArgument
     */
    public function openSession(string $id, ?string $principal = null): ?Session
    {
        try {
            $session = $this->driver->openSession($id, $principal);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }

        return $session === null ? null : new Session($session, $id);
    }

    /**
     * Ends a session for good (G7); false if $principal has no such session.
     *
     * @throws Exception\InvalidArgument
     */
    public function destroySession(string $id, ?string $principal = null): bool
    {
        return $this->openSession($id, $principal)?->destroy() ?? false;
    }

    /**
     * Returns the waiting room, a special session whose owners are the exchanges that wait for their clients. Such an
     * exchange calls {@see Session::attach()} on the room before it waits, and detaches afterwards. If all places are
     * taken, `attach()` throws {@see Exception\LimitExceeded}. The place of a process that died becomes free (G11). The
     * room appears in no list of sessions and serves no other purpose.
     *
     * {@see Sdk\SessionManager} uses the waiting room for its exchanges.
     *
     * @param int|null $places the number of places; null: the store's `max_waiting`
     *
     * @return Session|null null if neither $places nor `max_waiting` sets a limit
     *
     * @throws Exception\InvalidArgument
     */
    public function waitingRoom(?int $places = null): ?Session
    {
        try {
            $room = $this->driver->waitingRoom($places);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }

        return $room === null ? null : new Session($room, 'waiting room');
    }

    /**
     * Removes at most $limit expired sessions, and releases the owners of dead processes in the sessions that it visits
     * (G11). The cost grows with the number of removed sessions, not with the number of stored ones. (Attaching a new
     * owner, or delivering a response to a dead owner, releases dead owners of that session as well.)
     *
     * @throws Exception\InvalidArgument
     */
    public function collect(int $limit = 100): Collected
    {
        try {
            $collected = $this->driver->collect($limit);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }

        return new Collected($collected['sessions'], $collected['owners'], $collected['more']);
    }

    /**
     * Returns the store's contents in numbers, its counters since it was created, its limits and its place.
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
     * Appends a message to a topic of the notification bus, for readers in all processes. A topic keeps a bounded
     * number of messages and drops the oldest (G10).
     *
     * @return int the number of the message; the numbers of one topic rise by one
     *
     * @throws Exception\LimitExceeded if the message is too long
     * @throws Exception\InvalidArgument
     */
    public function publish(string $topic, string $message): int
    {
        try {
            return $this->driver->publish($topic, $message);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }

    /**
     * Returns the number of the topic's newest message, or 0 if there is none. A new reader starts with this cursor.
     *
     * @throws Exception\InvalidArgument
     */
    public function cursor(string $topic): int
    {
        try {
            return $this->driver->cursor($topic);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }

    /**
     * Returns at most $max messages of the topic that follow $cursor. All readers see the same messages in the same
     * order. Reading removes nothing.
     *
     * @throws Exception\InvalidArgument
     */
    public function since(string $topic, int $cursor, int $max = 100): BusEntries
    {
        try {
            $entries = $this->driver->since($topic, $cursor, $max);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }

        $messages = [];

        foreach ($entries['messages'] as [$number, $message]) {
            $messages[] = new BusMessage($number, $message);
        }

        return new BusEntries($messages, $entries['cursor'], $entries['missed']);
    }

    /**
     * Waits for a message of the topic that follows $cursor (G9). One call is one slice of at most $waitMs and at most
     * one second; call this method in a loop.
     *
     * @return bool whether there is such a message
     *
     * @throws Exception\InvalidArgument
     */
    public function waitSince(string $topic, int $cursor, int $waitMs): bool
    {
        try {
            return $this->driver->waitSince($topic, $cursor, $waitMs);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }

    /**
     * Consumes a single-use key, for example a nonce. Returns true for exactly one caller within $ttlMs milliseconds,
     * across all processes, and false for all others (G1).
     *
     * @throws Exception\InvalidArgument
     * @throws Exception\StoreFull
     */
    public function consumeOnce(string $key, int $ttlMs): bool
    {
        try {
            return $this->driver->consumeOnce($key, $ttlMs);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }
}
