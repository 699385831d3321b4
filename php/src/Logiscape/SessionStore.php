<?php

declare(strict_types=1);

namespace McpState\Logiscape;

use Mcp\Server\Transport\Http\HttpSession;
use Mcp\Server\Transport\Http\SessionStoreInterface;
use McpState\Exception\ExceptionInterface;
use McpState\Exception\InvalidArgument;
use McpState\Exception\SessionNotFound;
use McpState\Internal\StoreSource;
use McpState\Session;
use McpState\Store;

/**
 * Keeps the sessions of `logiscape/mcp-sdk-php` 2.x in a store that all PHP processes share:
 *
 *     $server->sessionStore(SessionStore::open('shm://shop'));
 *
 * That SDK loads a session as one record, and saves the whole record several times per request. This class merges the
 * changes of each request into the stored record in one transaction.
 *
 * **Guaranteed:**
 *
 * - Parallel requests keep each other's streams, recorded events, questions to the client and metadata keys (G1).
 * - Each save is applied in full or not at all (G8).
 * - Concurrent requests use different numbers for their questions, so that each response reaches the tool that asked
 *   (G5).
 * - A running request never restores a session that was deleted or has expired (G7).
 *
 * **Not guaranteed**, because the SDK does not say which request a part of the record belongs to:
 *
 * - Two equal responses that arrive at the same moment may both be accepted.
 * - The questions of a killed request stay in the record until the session ends.
 * - No call waits for an event or wakes a waiter.
 * - If two requests set the same metadata key of the application, the later save replaces the whole value.
 */
final class SessionStore implements SessionStoreInterface
{
    private const RECORD = 'record';
    private const NUMBERS = 'numbers';

    /** The parts of the record to which different requests add elements. All other values are merged as one cell. */
    private const SHAPE = [
        'metadata' => [
            'mcp_server_session' => ['pendingElicitations' => [], 'pendingSamplings' => []],
            'mcp_streams' => [],
            'mcp_stream_events' => ['entries' => ThreeWay::LIST_],
        ],
    ];

    /** The path of the number of the SDK's next question. */
    private const NEXT_REQUEST_ID = ['metadata', 'mcp_server_session', 'nextRequestId'];

    /** The number of request ids that each request reserves for its questions. */
    private const IDS_PER_REQUEST = 1000;

    private readonly StoreSource $store;

    /**
     * @var \WeakMap<HttpSession, array{Session, array<array-key, mixed>}> the session, and its last loaded or saved
     *      record
     */
    private \WeakMap $known;

    /**
     * @param Store|\Closure(): Store $store a store, or a closure that opens it on first use
     * @param int|null                $ttl   milliseconds that a session lives without being used; null: the store's
     *                                       `ttl_ms`. The SDK's own `session_timeout` applies as well
     */
    public function __construct(#[\SensitiveParameter] Store|\Closure $store, private readonly ?int $ttl = null)
    {
        $this->store = new StoreSource($store);
        $this->known = new \WeakMap();
    }

    /**
     * Creates a session store on the store that $dsn names, which is opened on first use.
     *
     * @param string|null $dsn null: the environment variable `MCP_STATE_DSN`, or without it the ini setting
     *                         `mcp_state.dsn`
     * @param int|null    $ttl milliseconds that a session lives without being used; null: the store's `ttl_ms`
     */
    public static function open(#[\SensitiveParameter] ?string $dsn = null, ?int $ttl = null): self
    {
        return new self(static fn (): Store => Store::open($dsn), $ttl);
    }

    /**
     * Returns the session with this id; null if it does not exist or has ended.
     *
     * @throws ExceptionInterface if the store fails: a null would make the client start a new session
     */
    public function load(string $sessionId): ?HttpSession
    {
        try {
            $session = $this->store->get()->openSession($sessionId);
            $record = $session?->get(self::RECORD);
        } catch (InvalidArgument | SessionNotFound) {
            return null; // The id is malformed, or the session has just ended.
        }

        if ($session === null || !\is_array($record)) {
            return null;
        }

        $record = self::reserveIds($session, $record);
        $loaded = HttpSession::fromArray(['id' => $sessionId] + $record);
        $this->known[$loaded] = [$session, self::record($loaded)];

        return $loaded;
    }

    /**
     * Merges the changes since this object was last loaded or saved, in one transaction (G1, G8). Saving a session that
     * has ended has no effect (G7).
     *
     * @throws \McpState\Exception\LimitExceeded if the record would exceed the store's `max_attribute_bytes`
     * @throws ExceptionInterface
     */
    public function save(HttpSession $session): void
    {
        $mine = self::record($session);
        [$stored, $base] = $this->known[$session] ?? $this->create($session);

        try {
            $stored->update(
                self::RECORD,
                static fn (mixed $theirs): array => \is_array($theirs)
                    ? ThreeWay::merge(self::SHAPE, $base, $mine, $theirs)
                    : $mine,
            );
        } catch (SessionNotFound) {
            return;
        }

        $this->known[$session] = [$stored, $mine];
    }

    /**
     * Ends the session for good (G7).
     *
     * @throws ExceptionInterface
     */
    public function delete(string $sessionId): void
    {
        try {
            $this->store->get()->destroySession($sessionId);
        } catch (InvalidArgument) {
            // The id is malformed, so no session has it.
        }
    }

    /**
     * Creates the session in the store.
     *
     * @return array{Session, array<array-key, mixed>} the session, and an empty record
     *
     * @throws ExceptionInterface
     */
    private function create(HttpSession $session): array
    {
        $this->store->get()->collect();

        return [$this->store->get()->createSession($session->getId(), $this->ttl), []];
    }

    /**
     * Reserves numbers for the questions of this request, and returns the record with the first of them.
     *
     * @param array<array-key, mixed> $record
     *
     * @return array<array-key, mixed>
     *
     * @throws ExceptionInterface
     */
    private static function reserveIds(Session $session, array $record): array
    {
        [$metadata, $server, $next] = self::NEXT_REQUEST_ID;
        $stored = $record[$metadata][$server][$next] ?? null;

        if (\is_int($stored)) {
            $record[$metadata][$server][$next] = $session->update(
                self::NUMBERS,
                static fn (mixed $last): int => \max(\is_int($last) ? $last + self::IDS_PER_REQUEST : 0, $stored),
            );
        }

        return $record;
    }

    /**
     * Returns the session as an array that has passed through JSON, without its id.
     *
     * @return array<array-key, mixed>
     *
     * @throws \JsonException if the session holds a value that JSON cannot express
     */
    private static function record(HttpSession $session): array
    {
        $record = \json_decode(
            \json_encode($session->toArray(), \JSON_THROW_ON_ERROR | \JSON_PRESERVE_ZERO_FRACTION),
            true,
            512,
            \JSON_THROW_ON_ERROR,
        );

        return \array_diff_key(\is_array($record) ? $record : [], ['id' => true]);
    }
}
