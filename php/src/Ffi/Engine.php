<?php

declare(strict_types=1);

namespace McpState\Ffi;

use FFI\CData;
use McpState\Exception\BackendMissing;
use McpState\Internal\FailureKind;

/**
 * A store, opened through the C library. It has the interface of `McpState\Native\Engine`
 * (php/ext/stubs/mcp_state.stub.php).
 *
 * @internal
 */
final class Engine
{
    private readonly Handle $handle;

    private function __construct(private readonly Library $library, CData $engine)
    {
        $this->handle = new Handle($library, 'engine', $engine);
    }

    private function __clone()
    {
    }

    /**
     * Opens the store that $dsn names. If $dsn is null, the setting `mcp_state.dsn` in php.ini names it.
     *
     * @throws BackendMissing
     * @throws Failure
     */
    public static function open(#[\SensitiveParameter] ?string $dsn = null): self
    {
        if (self::isPreloading()) {
            throw new Failure(
                'no store can be opened during opcache.preload, which may run as another user and before PHP forks; '
                . 'open it in a request',
                FailureKind::StoreUnavailable->value,
            );
        }

        $configured = \get_cfg_var('mcp_state.dsn');
        $library = Library::load();
        $engine = $library->new('mcp_state_engine *[1]');
        $library->call(
            'mcp_state_engine_open',
            $dsn ?? (\is_string($configured) && $configured !== '' ? $configured : 'shm://mcp'),
            $engine,
        );

        return new self($library, $engine[0]);
    }

    public function dsn(): string
    {
        $dsn = $this->library->new('mcp_state_buffer *[1]');
        $this->library->call('mcp_state_dsn', $this->handle->pointer, $dsn);

        return (string) $this->library->text($dsn);
    }

    /** @throws Failure */
    public function createSession(?string $id = null, ?int $ttlMs = null, ?string $principal = null): ?Session
    {
        $session = $this->library->new('mcp_state_session *[1]');
        $ttl = $this->library->nullable($ttlMs);
        $this->library->call('mcp_state_create_session', $this->handle->pointer, $id, $ttl, $principal, $session);

        return $session[0] === null ? null : new Session($this->library, $session[0], $this);
    }

    /** @throws Failure */
    public function openSession(string $id, ?string $principal = null): ?Session
    {
        $session = $this->library->new('mcp_state_session *[1]');
        $this->library->call('mcp_state_open_session', $this->handle->pointer, $id, $principal, $session);

        return $session[0] === null ? null : new Session($this->library, $session[0], $this);
    }

    /** @throws Failure */
    public function waitingRoom(?int $places = null): ?Session
    {
        $room = $this->library->new('mcp_state_session *[1]');
        $limit = $this->library->nullable($places);
        $this->library->call('mcp_state_waiting_room', $this->handle->pointer, $limit, $room);

        return $room[0] === null ? null : new Session($this->library, $room[0], $this);
    }

    /**
     * @return array{sessions: int, owners: int, more: bool}
     * @throws Failure
     */
    public function collect(int $limit = 100): array
    {
        $sessions = $this->library->new('int64_t[1]');
        $owners = $this->library->new('int64_t[1]');
        $more = $this->library->new('bool[1]');
        $this->library->call('mcp_state_collect', $this->handle->pointer, $limit, $sessions, $owners, $more);

        return ['sessions' => $sessions[0], 'owners' => $owners[0], 'more' => $more[0]];
    }

    /**
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
    public function stats(): array
    {
        $json = $this->library->new('mcp_state_buffer *[1]');
        $this->library->call('mcp_state_stats', $this->handle->pointer, $json);

        return \json_decode((string) $this->library->text($json), true, 512, \JSON_THROW_ON_ERROR);
    }

    /** @throws Failure */
    public function publish(string $topic, string $message): int
    {
        $number = $this->library->new('int64_t[1]');
        $this->library->call('mcp_state_publish', $this->handle->pointer, $topic, $message, $number);

        return $number[0];
    }

    /** @throws Failure */
    public function cursor(string $topic): int
    {
        $cursor = $this->library->new('int64_t[1]');
        $this->library->call('mcp_state_cursor', $this->handle->pointer, $topic, $cursor);

        return $cursor[0];
    }

    /**
     * @return array{messages: list<array{int, string}>, cursor: int, missed: int}
     * @throws Failure
     */
    public function since(string $topic, int $cursor, int $max = 100): array
    {
        $messages = $this->library->new('mcp_state_messages *[1]');
        $next = $this->library->new('int64_t[1]');
        $missed = $this->library->new('int64_t[1]');
        $results = [$messages, $next, $missed];
        $this->library->call('mcp_state_since', $this->handle->pointer, $topic, $cursor, $max, ...$results);
        $messages = \array_map(
            static fn (array $message): array => [$message[0], $message[1]],
            $this->library->messages($messages),
        );

        return ['messages' => $messages, 'cursor' => $next[0], 'missed' => $missed[0]];
    }

    /** @throws Failure */
    public function waitSince(string $topic, int $cursor, int $waitMs): bool
    {
        $isThere = $this->library->new('bool[1]');
        $this->library->call('mcp_state_wait_since', $this->handle->pointer, $topic, $cursor, $waitMs, $isThere);

        return $isThere[0];
    }

    /** @throws Failure */
    public function consumeOnce(string $key, int $ttlMs): bool
    {
        $first = $this->library->new('bool[1]');
        $this->library->call('mcp_state_consume_once', $this->handle->pointer, $key, $ttlMs, $first);

        return $first[0];
    }

    /** Tells whether PHP runs the script of `opcache.preload`, which is then the first included file. */
    private static function isPreloading(): bool
    {
        $preload = (string) \ini_get('opcache.preload');

        return $preload !== '' && (\get_included_files()[0] ?? null) === \realpath($preload);
    }
}
