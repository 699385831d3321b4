<?php

declare(strict_types=1);

namespace McpState\Ffi;

use FFI\CData;
use McpState\Internal\FailureKind;

/**
 * A session, used through the C library. It has the interface of `McpState\Native\Session`
 * (php/ext/stubs/mcp_state.stub.php).
 *
 * @internal
 */
final class Session
{
    /** `MCP_STATE_OWNER_SIZE` */
    private const OWNER_SIZE = 33;

    /** `MCP_STATE_TIMEOUT_OF_STORE` */
    private const TIMEOUT_OF_STORE = -1;

    private const CLAIM_WAITING = 2;
    private const POLICY_ISOLATE = 1;

    private readonly Handle $handle;

    /** @internal {@see Engine} creates the sessions. */
    public function __construct(private readonly Library $library, CData $session, public readonly Engine $engine)
    {
        $this->handle = new Handle($library, 'session', $session);
    }

    private function __clone()
    {
    }

    public function id(): string
    {
        $id = $this->library->new('mcp_state_buffer *[1]');
        $this->library->call('mcp_state_session_id', $this->handle->pointer, $id);

        return (string) $this->library->text($id);
    }

    /** @throws Failure */
    public function touch(): bool
    {
        $there = $this->library->new('bool[1]');
        $this->library->call('mcp_state_touch', $this->handle->pointer, $there);

        return $there[0];
    }

    /** @throws Failure */
    public function destroy(): bool
    {
        $ended = $this->library->new('bool[1]');
        $this->library->call('mcp_state_destroy_session', $this->handle->pointer, $ended);

        return $ended[0];
    }

    /**
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
    public function stats(): array
    {
        $json = $this->library->new('mcp_state_buffer *[1]');
        $this->library->call('mcp_state_session_stats', $this->handle->pointer, $json);

        return \json_decode((string) $this->library->text($json), true, 512, \JSON_THROW_ON_ERROR);
    }

    /** @throws Failure */
    public function attach(int $kind, ?int $leaseMs = null): string
    {
        $token = $this->library->new('char[' . self::OWNER_SIZE . ']');
        $lease = $this->library->nullable($leaseMs);
        $this->library->call('mcp_state_attach', $this->handle->pointer, $kind, $lease, $token, self::OWNER_SIZE);
        $token = \FFI::string($token);
        RequestEnd::attached($token, $this);

        return $token;
    }

    /** @throws Failure */
    public function renew(string $owner): void
    {
        $this->library->call('mcp_state_renew', $this->handle->pointer, $owner);
    }

    /**
     * @return array{dropped: int, abandoned: int}|null
     * @throws Failure
     */
    public function detach(string $owner): ?array
    {
        $ended = $this->library->new('bool[1]');
        $dropped = $this->library->new('int64_t[1]');
        $abandoned = $this->library->new('int64_t[1]');
        $this->library->call('mcp_state_detach', $this->handle->pointer, $owner, $ended, $dropped, $abandoned);
        RequestEnd::detached($owner);

        return $ended[0] ? ['dropped' => $dropped[0], 'abandoned' => $abandoned[0]] : null;
    }

    /** @throws Failure */
    public function get(string $key): ?string
    {
        $memory = $this->library->acquire();
        $json = $memory->buffer ??= $this->library->new('mcp_state_buffer *[1]');
        $status = $this->library->c->mcp_state_get($this->handle->pointer, $key, \strlen($key), $json, $memory->error);

        if ($status !== 0) {
            throw $this->library->failure($memory);
        }

        $text = $this->library->text($json);
        $this->library->release($memory);

        return $text;
    }

    /** @throws Failure */
    public function all(): string
    {
        $json = $this->library->new('mcp_state_buffer *[1]');
        $this->library->call('mcp_state_all', $this->handle->pointer, $json);

        return (string) $this->library->text($json);
    }

    /** @throws Failure */
    public function set(string $key, string $json): void
    {
        $this->library->call('mcp_state_set', $this->handle->pointer, $key, $json);
    }

    /** @throws Failure */
    public function remove(string $key): bool
    {
        $removed = $this->library->new('bool[1]');
        $this->library->call('mcp_state_remove', $this->handle->pointer, $key, $removed);

        return $removed[0];
    }

    /** @throws Failure */
    public function take(string $key): ?string
    {
        $json = $this->library->new('mcp_state_buffer *[1]');
        $this->library->call('mcp_state_take', $this->handle->pointer, $key, $json);

        return $this->library->text($json);
    }

    /** @throws Failure */
    public function putIfAbsent(string $key, string $json): bool
    {
        $put = $this->library->new('bool[1]');
        $this->library->call('mcp_state_put_if_absent', $this->handle->pointer, $key, $json, $put);

        return $put[0];
    }

    /** @throws Failure */
    public function compareAndSet(string $key, ?string $expected, ?string $json): bool
    {
        $set = $this->library->new('bool[1]');
        $this->library->call('mcp_state_compare_and_set', $this->handle->pointer, $key, $expected, $json, $set);

        return $set[0];
    }

    /**
     * @param list<array{string, ?string}> $changes
     *
     * @throws Failure
     */
    public function patch(array $changes): void
    {
        $texts = '';

        foreach ($changes as $i => $change) {
            [$key, $json] = \is_array($change) && \count($change) === 2 ? $change : [null, null];

            if (!\is_string($key) || ($json !== null && !\is_string($json))) {
                throw new Failure(
                    'change ' . ($i + 1) . ' is not valid: it must be a list of a key and a JSON text, or null to '
                    . 'remove the key',
                    FailureKind::InvalidArgument->value,
                );
            }

            $texts .= $key . $json;
        }

        // FFI accepts a PHP string as an argument, but not as a field of a structure.
        $at = $this->library->copy($texts, $keep);
        $array = $this->library->new('mcp_state_change[' . \max(1, \count($changes)) . ']');

        foreach ($changes as $i => [$key, $json]) {
            $array[$i]->key = $at;
            $array[$i]->key_len = \strlen($key);
            $at += \strlen($key);

            if ($json !== null) {
                $array[$i]->json = $at;
                $array[$i]->json_len = \strlen($json);
                $at += \strlen($json);
            }
        }

        $this->library->call('mcp_state_patch', $this->handle->pointer, $array, \count($changes));
    }

    /** @throws Failure */
    public function enqueueOutgoing(string $owner, string $message, string $context = ''): int
    {
        $memory = $this->library->acquire();
        $sequence = $memory->number ??= $this->library->new('int64_t[1]');
        $status = $this->library->c->mcp_state_enqueue_outgoing(
            $this->handle->pointer,
            $owner,
            \strlen($owner),
            $message,
            \strlen($message),
            $context,
            \strlen($context),
            $sequence,
            $memory->error,
        );

        if ($status !== 0) {
            throw $this->library->failure($memory);
        }

        $number = $sequence[0];
        $this->library->release($memory);

        return $number;
    }

    /**
     * @return list<array{int, string, string}>
     * @throws Failure
     */
    public function takeOutgoing(string $owner, int $max = 100): array
    {
        $memory = $this->library->acquire();
        $messages = $memory->messages ??= $this->library->new('mcp_state_messages *[1]');
        $status = $this->library->c->mcp_state_take_outgoing(
            $this->handle->pointer,
            $owner,
            \strlen($owner),
            $max,
            $messages,
            $memory->error,
        );

        if ($status !== 0) {
            throw $this->library->failure($memory);
        }

        $list = $this->library->messages($messages);
        $this->library->release($memory);

        return $list;
    }

    /**
     * @return list<array{int, string, string}>
     * @throws Failure
     */
    public function peekOutgoing(string $owner, int $max = 100): array
    {
        $messages = $this->library->new('mcp_state_messages *[1]');
        $this->library->call('mcp_state_peek_outgoing', $this->handle->pointer, $owner, $max, $messages);

        return $this->library->messages($messages);
    }

    /** @throws Failure */
    public function acknowledge(string $owner, int $upTo): int
    {
        $removed = $this->library->new('int64_t[1]');
        $this->library->call('mcp_state_acknowledge', $this->handle->pointer, $owner, $upTo, $removed);

        return $removed[0];
    }

    /** @throws Failure */
    public function enqueueBroadcast(string $message, string $context = ''): int
    {
        $number = $this->library->new('int64_t[1]');
        $this->library->call('mcp_state_enqueue_broadcast', $this->handle->pointer, $message, $context, $number);

        return $number[0];
    }

    /** @throws Failure */
    public function nextRequestId(): int
    {
        $id = $this->library->new('int64_t[1]');
        $this->library->call('mcp_state_next_request_id', $this->handle->pointer, $id);

        return $id[0];
    }

    /** @throws Failure */
    public function registerPending(string $owner, int $id, ?int $timeoutMs = null, string $method = ''): ?int
    {
        $registered = $this->library->new('bool[1]');
        $left = $this->library->new('int64_t[1]');
        $this->library->call(
            'mcp_state_register_pending',
            $this->handle->pointer,
            $owner,
            $id,
            self::timeout($timeoutMs),
            $method,
            $registered,
            $left,
        );

        return $registered[0] ? $left[0] : null;
    }

    /** @throws Failure */
    public function sendRequest(string $owner, string $message, ?int $timeoutMs = null, string $context = ''): int
    {
        $memory = $this->library->acquire();
        $id = $memory->number ??= $this->library->new('int64_t[1]');
        $status = $this->library->c->mcp_state_send_request(
            $this->handle->pointer,
            $owner,
            \strlen($owner),
            $message,
            \strlen($message),
            self::timeout($timeoutMs),
            $context,
            \strlen($context),
            $id,
            $memory->error,
        );

        if ($status !== 0) {
            throw $this->library->failure($memory);
        }

        $number = $id[0];
        $this->library->release($memory);

        return $number;
    }

    /** @throws Failure */
    public function deliverResponse(int $id, string $payload): int
    {
        $memory = $this->library->acquire();
        $delivery = $memory->delivery ??= $this->library->new('mcp_state_delivery[1]');
        $status = $this->library->c->mcp_state_deliver_response(
            $this->handle->pointer,
            $id,
            $payload,
            \strlen($payload),
            $delivery,
            $memory->error,
        );

        if ($status !== 0) {
            throw $this->library->failure($memory);
        }

        $outcome = $delivery[0];
        $this->library->release($memory);

        return $outcome;
    }

    /**
     * @return array{int, ?string, ?int}
     * @throws Failure
     */
    public function claim(string $owner, int $id): array
    {
        $memory = $this->library->acquire();
        $state = $memory->claim ??= $this->library->new('mcp_state_claim_state[1]');
        $payload = $memory->buffer ??= $this->library->new('mcp_state_buffer *[1]');
        $left = $memory->number ??= $this->library->new('int64_t[1]');
        $status = $this->library->c->mcp_state_claim(
            $this->handle->pointer,
            $owner,
            \strlen($owner),
            $id,
            $state,
            $payload,
            $left,
            $memory->error,
        );

        if ($status !== 0) {
            throw $this->library->failure($memory);
        }

        $claim = [$state[0], $this->library->text($payload), $state[0] === self::CLAIM_WAITING ? $left[0] : null];
        $this->library->release($memory);

        return $claim;
    }

    /**
     * @return array{int, int, ?string}|null
     * @throws Failure
     */
    public function claimAny(string $owner): ?array
    {
        $found = $this->library->new('bool[1]');
        $id = $this->library->new('int64_t[1]');
        $state = $this->library->new('mcp_state_claim_state[1]');
        $payload = $this->library->new('mcp_state_buffer *[1]');
        $this->library->call('mcp_state_claim_any', $this->handle->pointer, $owner, $found, $id, $state, $payload);

        return $found[0] ? [$id[0], $state[0], $this->library->text($payload)] : null;
    }

    /**
     * @return list<int>
     * @throws Failure
     */
    public function resolveTimeouts(string $owner): array
    {
        $ids = $this->library->new('mcp_state_ids *[1]');
        $this->library->call('mcp_state_resolve_timeouts', $this->handle->pointer, $owner, $ids);

        return $this->library->ids($ids);
    }

    /** @throws Failure */
    public function cancelPending(string $owner, int $id): int
    {
        $outcome = $this->library->new('mcp_state_cancel_outcome[1]');
        $this->library->call('mcp_state_cancel_pending', $this->handle->pointer, $owner, $id, $outcome);

        return $outcome[0];
    }

    /**
     * @return list<array{int, int, int, string}>
     * @throws Failure
     */
    public function pending(string $owner): array
    {
        $requests = $this->library->new('mcp_state_requests *[1]');
        $this->library->call('mcp_state_pending', $this->handle->pointer, $owner, $requests);

        return $this->library->requests($requests);
    }

    /**
     * @return list<array{int, int, int, string}>
     * @throws Failure
     */
    public function allPending(): array
    {
        $requests = $this->library->new('mcp_state_requests *[1]');
        $this->library->call('mcp_state_pending', $this->handle->pointer, null, $requests);

        return $this->library->requests($requests);
    }

    /** @throws Failure */
    public function peekResponse(string $owner, int $id): ?string
    {
        $payload = $this->library->new('mcp_state_buffer *[1]');
        $this->library->call('mcp_state_peek_response', $this->handle->pointer, $owner, $id, $payload);

        return $this->library->text($payload);
    }

    /**
     * @return array{int, int}
     * @throws Failure
     */
    public function wait(string $owner, int $interest, int $after, int $waitMs): array
    {
        $memory = $this->library->acquire();
        $outcome = $memory->wait ??= $this->library->new('mcp_state_wait_outcome[1]');
        $cursor = $memory->number ??= $this->library->new('int64_t[1]');
        $status = $this->library->c->mcp_state_wait(
            $this->handle->pointer,
            $owner,
            \strlen($owner),
            $interest,
            $after,
            $waitMs,
            $outcome,
            $cursor,
            $memory->error,
        );

        if ($status !== 0) {
            throw $this->library->failure($memory);
        }

        $waited = [$outcome[0], $cursor[0]];
        $this->library->release($memory);

        return $waited;
    }

    /** @throws Failure */
    public function beginRequest(string $owner, int|string $id, int $policy = self::POLICY_ISOLATE): bool
    {
        [$number, $text] = self::typed($id);
        $begun = $this->library->new('bool[1]');
        $this->library->call('mcp_state_begin_request', $this->handle->pointer, $owner, $number, $text, $policy, $begun);

        return $begun[0];
    }

    /** @throws Failure */
    public function finishRequest(string $owner, int|string $id): ?bool
    {
        [$number, $text] = self::typed($id);
        $was = $this->library->new('bool[1]');
        $cancelled = $this->library->new('bool[1]');
        $this->library->call('mcp_state_finish_request', $this->handle->pointer, $owner, $number, $text, $was, $cancelled);

        return $was[0] ? $cancelled[0] : null;
    }

    /** @throws Failure */
    public function isCancelled(string $owner, int|string $id): bool
    {
        [$number, $text] = self::typed($id);
        $cancelled = $this->library->new('bool[1]');
        $this->library->call('mcp_state_is_cancelled', $this->handle->pointer, $owner, $number, $text, $cancelled);

        return $cancelled[0];
    }

    /** @throws Failure */
    public function cancelRequest(int|string $id): int
    {
        [$number, $text] = self::typed($id);
        $outcome = $this->library->new('mcp_state_cancel_outcome[1]');
        $this->library->call('mcp_state_cancel_request', $this->handle->pointer, $number, $text, $outcome);

        return $outcome[0];
    }

    /**
     * Returns a JSON-RPC id in the form of the C library: a text, or a number if the text is null.
     *
     * @return array{int, ?string}
     */
    private static function typed(int|string $id): array
    {
        return \is_int($id) ? [$id, null] : [0, $id];
    }

    /**
     * Returns the timeout of a pending request in the form of the C library.
     *
     * @throws Failure
     */
    private static function timeout(?int $timeoutMs): int
    {
        if ($timeoutMs !== null && $timeoutMs < 0) {
            throw new Failure(
                "the timeout $timeoutMs is not valid: it must not be negative",
                FailureKind::InvalidArgument->value,
            );
        }

        return $timeoutMs ?? self::TIMEOUT_OF_STORE;
    }
}
