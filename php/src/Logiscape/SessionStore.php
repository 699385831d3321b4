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
 * That SDK loads a session as one record, and saves the whole of it several times in a request. Here each save is one
 * atomic merge of what this request changed into what is stored by then.
 *
 * **Promised.** Parallel requests keep each other's streams, their recorded events, questions to the client and metadata
 * keys; each save is done in full or not at all. Requests at the same time number their questions differently, so that
 * each answer finds the tool that asked. A session that was deleted or has expired is never brought back by a request
 * still running.
 *
 * **Not promised**, because the SDK never says what belongs to whom: an answer that comes twice at the same moment may be
 * taken twice; what a killed request asked stays in the record until the session ends; nothing waits or wakes. Where two
 * requests set one metadata key of the application, the later save has it whole.
 */
final class SessionStore implements SessionStoreInterface
{
    private const RECORD = 'record';
    private const NUMBERS = 'numbers';

    /** Where the SDK keeps things that different requests add and remove; what is not named here is one cell. */
    private const SHAPE = [
        'metadata' => [
            'mcp_server_session' => ['pendingElicitations' => [], 'pendingSamplings' => []],
            'mcp_streams' => [],
            'mcp_stream_events' => ['entries' => ThreeWay::LIST_],
        ],
    ];

    /** Where the SDK keeps the number of its next question. */
    private const NEXT_REQUEST_ID = ['metadata', 'mcp_server_session', 'nextRequestId'];

    /** How many numbers each request gets for its questions. */
    private const NUMBERS_EACH = 1000;

    private readonly StoreSource $store;

    /** @var \WeakMap<HttpSession, array{Session, array<array-key, mixed>}> its session, and its record as last loaded or saved */
    private \WeakMap $known;

    /**
     * @param Store|\Closure(): Store $store a store, or what opens it when it is first needed
     * @param int|null                $ttl   milliseconds that a session lives without being used; null: the store's
     *                                       `ttl_ms`. The SDK's own `session_timeout` applies besides
     */
    public function __construct(#[\SensitiveParameter] Store|\Closure $store, private readonly ?int $ttl = null)
    {
        $this->store = new StoreSource($store);
        $this->known = new \WeakMap();
    }

    /** @param string|null $dsn null: the environment variable `MCP_STATE_DSN`, else the ini setting `mcp_state.dsn` */
    public static function open(#[\SensitiveParameter] ?string $dsn = null, ?int $ttl = null): self
    {
        return new self(static fn (): Store => Store::open($dsn), $ttl);
    }

    /** @throws ExceptionInterface when the store cannot be asked: a "no" would make the client start over */
    public function load(string $sessionId): ?HttpSession
    {
        try {
            $session = $this->store->get()->openSession($sessionId);
            $record = $session?->get(self::RECORD);
        } catch (InvalidArgument | SessionNotFound) {
            return null; // An id that no session can have, or a session that just ended.
        }

        if ($session === null || !\is_array($record)) {
            return null;
        }

        $record = self::numbered($session, $record);
        $loaded = HttpSession::fromArray(['id' => $sessionId] + $record);
        $this->known[$loaded] = [$session, self::plain($loaded)];

        return $loaded;
    }

    /**
     * Merges what was changed since this object was loaded or saved last. Nothing happens when the session has ended
     * meanwhile.
     *
     * @throws \McpState\Exception\LimitExceeded when the record is larger than the store's `max_attribute_bytes`
     * @throws ExceptionInterface
     */
    public function save(HttpSession $session): void
    {
        $mine = self::plain($session);
        [$stored, $base] = $this->known[$session] ?? $this->created($session);

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

    /** @throws ExceptionInterface */
    public function delete(string $sessionId): void
    {
        try {
            $this->store->get()->destroySession($sessionId);
        } catch (InvalidArgument) {
            // An id that no session can have.
        }
    }

    /**
     * @return array{Session, array<array-key, mixed>}
     *
     * @throws ExceptionInterface
     */
    private function created(HttpSession $session): array
    {
        $this->store->get()->collect();

        return [$this->store->get()->createSession($session->getId(), $this->ttl), []];
    }

    /**
     * The record with numbers for this request's questions that no other request has.
     *
     * @param array<array-key, mixed> $record
     *
     * @return array<array-key, mixed>
     *
     * @throws ExceptionInterface
     */
    private static function numbered(Session $session, array $record): array
    {
        [$metadata, $server, $next] = self::NEXT_REQUEST_ID;
        $stored = $record[$metadata][$server][$next] ?? null;

        if (\is_int($stored)) {
            $record[$metadata][$server][$next] = $session->update(
                self::NUMBERS,
                static fn (mixed $last): int => \max(\is_int($last) ? $last + self::NUMBERS_EACH : 0, $stored),
            );
        }

        return $record;
    }

    /**
     * The session as it comes back from JSON, without its id.
     *
     * @return array<array-key, mixed>
     *
     * @throws \JsonException when the session holds what JSON cannot express
     */
    private static function plain(HttpSession $session): array
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
