<?php

declare(strict_types=1);

namespace McpState;

use McpState\Internal\Driver;
use McpState\Internal\FailureKind;
use McpState\Internal\Host;

/**
 * Where the sessions are: one store, shared by every process that opens the same DSN.
 *
 *     $store = Store::open('shm://shop');
 *     $session = $store->openSession($id) ?? $store->createSession();
 *
 * DSNs: `shm://NAME` (shared memory of one machine), `file:///DIR` (a directory; survives a restart of the machine),
 * `memory://` (one process, for tests). Options follow as a query: `shm://shop?ttl_ms=600000&max_sessions=500`.
 * All of them: docs/settings.md.
 *
 * Every operation, here and on {@see Session} and {@see Owner}, is one transaction: it happens in full or not at all
 * (G8), and concurrent ones behave as if done one at a time (G1). All durations are milliseconds, all sizes bytes.
 *
 * Any operation may throw {@see Exception\StoreUnavailable} or another {@see Exception\ExceptionInterface} when the
 * store itself is in trouble; the methods below name only what a healthy store throws.
 */
final class Store
{
    /** The `Native\API_VERSION` this library is written for. */
    private const API_VERSION = 1;

    private function __construct(private readonly Native\Engine|Ffi\Engine $driver)
    {
    }

    /**
     * Opens the store, once for each process and DSN; opening it again costs next to nothing.
     *
     * @param string|null $dsn null: the environment variable `MCP_STATE_DSN`, else the ini setting `mcp_state.dsn`
     *
     * @throws Exception\BackendMissing when neither the extension nor, by FFI, the C library is there and fits; the
     *                                  message says what to install
     * @throws Exception\InvalidDsn
     * @throws Exception\StoreUnavailable when the store's place cannot be used; the message says how to mend it
     * @throws Exception\StoreIncompatible when another version made the store
     */
    public static function open(#[\SensitiveParameter] ?string $dsn = null): self
    {
        if (self::isRestricted()) {
            Host::check(Host::NEEDED);
        }

        $dsn ??= \getenv('MCP_STATE_DSN') ?: null;

        try {
            // The extension that fits, as nearly always, is found here: a class more to load would cost every request.
            $fits = \defined('McpState\Native\API_VERSION') && Native\API_VERSION === self::API_VERSION;

            return new self($fits ? Native\Engine::open($dsn) : Driver::open($dsn, self::API_VERSION));
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }

    /** Whether the host disables any function; nearly none does, and a class more to load would cost every request. */
    private static function isRestricted(): bool
    {
        try {
            return (string) \ini_get('disable_functions') !== '';
        } catch (\Error) {
            return true; // ini_get itself.
        }
    }

    /** The DSN in use, without passwords. */
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
     * @param int|null    $ttlMs     how long the session lives without being used; null: the store's `ttl_ms`.
     *                               It never expires while one of its owners lives
     * @param string|null $principal who the session belongs to: to everybody else it is not there (G12)
     *
     * @throws Exception\SessionExists when there is a session with this id; it is left as it is
     * @throws Exception\LimitExceeded when the store or the principal has too many sessions and none can give way
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
            // Whoever has a whole id has the session, so no message shows one.
            throw new Exception\SessionExists(
                'session ' . \substr((string) $id, 0, 8) . '… exists already; without an id, a random one is chosen'
            );
        }

        return new Session($session, $id);
    }

    /**
     * The session with this id, or null: it never existed, has expired, was destroyed, or is somebody else's. Nothing
     * tells these apart (G12).
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
     * Ends a session for good (G7); false when there was none that belongs to $principal.
     *
     * @throws Exception\InvalidArgument
     */
    public function destroySession(string $id, ?string $principal = null): bool
    {
        return $this->openSession($id, $principal)?->destroy() ?? false;
    }

    /**
     * The waiting room: each exchange that waits for its client {@see Session::attach()}es to it, and detaches afterwards.
     * When $places wait already, a further one gets {@see Exception\LimitExceeded}. A place ends with its process, too.
     * The room is in no list of sessions, and nothing else is done with it.
     *
     * {@see Sdk\SessionManager} does this for its exchanges.
     *
     * @param int|null $places null: the store's `max_waiting`
     *
     * @return Session|null null when neither is set, and nobody counts
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
     * Removes at most $limit expired sessions, and the owners of dead processes found on the way (G11). The cost grows
     * with what is removed, not with what is stored. (What else a dead owner left goes when an answer to it comes, or
     * the session's next owner.)
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
     * What the store holds, what it has counted since it was made, its limits and its place.
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
     * Appends a message to a topic of the notification bus, for readers in any process. The topic keeps a bounded
     * number of messages and drops the oldest.
     *
     * @return int the message's number; those of one topic rise by one
     *
     * @throws Exception\LimitExceeded when the message is too long
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
     * The number of the topic's newest message, 0 when there is none: where a new reader starts.
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
     * At most $max messages of the topic after $cursor: all readers see all of them in the same order. Nothing is
     * removed.
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
     * Waits for a message of the topic after $cursor: one slice, at most $waitMs and at most one second. Call it in a
     * loop.
     *
     * @return bool whether there is one
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
     * True for exactly one caller within $ttlMs, whichever process asks first; false for all others. For nonces and
     * other things to be used once.
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
