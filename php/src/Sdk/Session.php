<?php

declare(strict_types=1);

namespace McpState\Sdk;

use Mcp\Server\Session\SessionInterface;
use McpState\Exception\ExceptionInterface;
use McpState\Exception\SessionNotFound;
use McpState\Sdk\Internal\Call;
use McpState\Sdk\Internal\CallStack;
use McpState\Sdk\Internal\ElementChange;
use McpState\Sdk\Internal\Exchange;
use McpState\Sdk\Internal\Journal;
use McpState\Sdk\Internal\Key;
use McpState\Sdk\Internal\RequestMemory;
use McpState\Sdk\Internal\Share;
use McpState\Sdk\Internal\Value;
use Symfony\Component\Uid\Uuid;

/**
 * A session as the SDK and its handlers use it. The store that all processes share holds its state.
 *
 * **Attributes.** This object records the writes of `set()` and `forget()`, and {@see save()} commits them as one patch
 * of the written keys (G1, G8). Without `save()` they are discarded. A read returns the recorded write, or else the
 * last committed value, so the saved writes of another request can appear between two reads. {@see all()} is one
 * snapshot. A write to a key replaces all values below it. It replaces lists as a whole, except for
 * `resource_subscriptions` and the `$collections` of the manager, whose elements are added and removed one by one. A
 * null value counts as absent.
 *
 * After a question to the client or a progress notification, the SDK does not save the handler's object. This object
 * then commits when the handler returns. Call `save()` to commit earlier, and to learn whether the commit succeeded.
 *
 * `get()` followed by `set()` is not atomic. {@see update()}, {@see pull()} and `set(…, overwrite: false)` are atomic.
 *
 * **Objects** that are not plain data (`stdClass`, `JsonSerializable`, enums), and all values under the name of an SDK
 * class, stay in the memory of this request. They are never stored.
 *
 * **Unstorable writes**, which have a value that JSON cannot express or a key that the store does not accept, make the
 * next `save()` return false. All other writes are committed.
 */
final class Session implements SessionInterface
{
    private Journal $journal;

    /** @var list<int|string> numbers of the queued messages that this object returned last */
    private array $shownRows = [];

    /** @var list<array<string, mixed>> the messages with these numbers */
    private array $shownMessages = [];

    /** @var array<int, bool> the pending requests that this object returned last: id => whether it was timed out */
    private array $shownPending = [];

    /** @var list<int> numbers of the messages that this object queued since all() */
    private array $queued = [];

    /** @var list<int> ids of the pending requests that this object registered since all() */
    private array $asked = [];

    /** @var list<array<string, mixed>> messages for a session that this exchange does not serve, until save() */
    private array $broadcasts = [];

    /** @var array<array-key, mixed> values under keys that the store does not accept, until save() */
    private array $unstorable = [];

    /** Whether a write since the last save() was unstorable. */
    private bool $hasUnstorable = false;

    /** @var array<string, array<array-key, mixed>> the committed value of each collection when this object read it */
    private array $collections = [];

    /** @var array{array<array-key, mixed>, Journal}|null the committed attributes and the journal at the last all() */
    private ?array $snapshot = null;

    private readonly RequestMemory $memory;

    /**
     * @var \WeakReference<\Fiber<mixed, mixed, mixed, mixed>>|null the fiber that created this object, which runs no
     *      handler
     */
    private readonly ?\WeakReference $creatorFiber;

    /** @internal {@see SessionManager} creates the sessions. */
    public function __construct(
        private readonly Uuid $uuid,
        private readonly Share $share,
        private readonly Exchange $exchange,
        /** Whether the SDK resolved this object for the client's message. All other objects belong to its loop. */
        private readonly bool $isResolved,
    ) {
        $this->journal = new Journal();
        $this->memory = $exchange->memory();
        $fiber = \Fiber::getCurrent();
        $this->creatorFiber = $fiber === null ? null : \WeakReference::create($fiber);
    }

    /** Returns the session's id. */
    public function getId(): Uuid
    {
        $call = $this->trackCall();

        if ($call !== null) {
            // The SDK reads the id when a handler is about to send a request to the client.
            $call->requestId ??= CallStack::requestId();
        }

        return $this->uuid;
    }

    /**
     * Commits the recorded writes in one transaction and renews the session's expiry.
     *
     * If the store is unavailable and there are no writes, the result is true: the SDK would otherwise discard the
     * result of the tool.
     *
     * @return bool whether, as far as is known, the session exists and all writes were committed. False if a write was
     *              unstorable; the log names its key, and all other writes were committed. The session is never created
     *              again (G7)
     */
    public function save(): bool
    {
        $hasNothing = $this->journal->isEmpty() && $this->broadcasts === [] && !$this->hasUnstorable;

        try {
            foreach ($this->broadcasts as $message) {
                $this->share->outbox->broadcast($message);
            }

            $this->broadcasts = [];
            $exists = $this->commit();
            [$hasUnstorable, $this->hasUnstorable] = [$this->hasUnstorable, false];

            return $exists && !$hasUnstorable;
        } catch (ExceptionInterface $e) {
            $this->share->failed('cannot save the session', $e);

            return $hasNothing && $this->share->session() !== null;
        }
    }

    /** Returns the value under $key, or $default if there is none: the recorded write or the last committed value. */
    public function get(string $key, mixed $default = null): mixed
    {
        return match (Key::of($key)) {
            Key::RequestId => $this->share->questions->nextId(),
            Key::Queue => $this->queue(),
            Key::Pending => $this->pending(),
            Key::Response => $this->response($key),
            Key::Request => $this->memory->get($key),
            Key::Attribute => $this->unstorable[$key] ?? $this->memory->get($key) ?? $this->attribute($key),
        } ?? $default;
    }

    /**
     * Records a write of $value under $key, which {@see save()} commits. With `overwrite: false`, commits the recorded
     * writes at once and then stores $value if $key has none; of several callers, exactly one succeeds (G1).
     */
    public function set(string $key, mixed $value, bool $overwrite = true): void
    {
        if (!$overwrite) {
            $this->putIfAbsent($key, $value);

            return;
        }

        match (Key::of($key)) {
            Key::RequestId => null, // Reading the number reserved it.
            Key::Queue => $this->setQueue(\is_array($value) ? $value : []),
            Key::Pending => $this->setPending(\is_array($value) ? $value : []),
            Key::Response => $value === null ? null : $this->deliver($key, $value),
            Key::Request => $this->memory->set($key, $value),
            Key::Attribute => $this->setAttribute($key, $value),
        };
    }

    /** Tells whether $key has a value that is not null. */
    public function has(string $key): bool
    {
        return $this->get($key) !== null;
    }

    /** Records the removal of the value under $key, which {@see save()} commits. */
    public function forget(string $key): void
    {
        match (Key::of($key)) {
            Key::RequestId, Key::Response => null,
            Key::Queue => $this->setQueue([]),
            Key::Pending => $this->setPending([]),
            Key::Request => $this->memory->forget($key),
            Key::Attribute => $this->forgetAttribute($key),
        };
    }

    /** Reverts what {@see hydrate()} reverts, and records the removal of all attributes. */
    public function clear(): void
    {
        $this->hydrate([]);
    }

    /**
     * Commits the recorded writes, then removes the value under $key and returns it. Of several callers, exactly one
     * receives the value (G1).
     */
    public function pull(string $key, mixed $default = null): mixed
    {
        $value = $this->memory->get($key);

        if ($value !== null || Key::of($key) !== Key::Attribute) {
            $value ??= $this->get($key);
            $this->forget($key);

            return $value ?? $default;
        }

        return $this->attempt("cannot take the attribute \"$key\"", function () use ($key): mixed {
            $this->commit();

            return Key::isStorable($key) ? $this->share->session()?->take($key) : null;
        }) ?? $default;
    }

    /**
     * Commits the recorded writes, then replaces the value under $key with the result of $fn, without losing updates of
     * other requests (G1).
     *
     * @param \Closure(mixed): mixed $fn receives the current value, or null if there is none. It must have no side
     *                                   effects, because it runs again if another request changes the value meanwhile
     *
     * @return mixed the stored value
     *
     * @throws ExceptionInterface if the store fails or the session has ended
     * @throws \McpState\Exception\InvalidArgument if $key is not the key of an attribute
     */
    public function update(string $key, \Closure $fn): mixed
    {
        if (Key::of($key) !== Key::Attribute) {
            throw new \McpState\Exception\InvalidArgument("\"$key\" is not an attribute: it belongs to the SDK");
        }

        $this->commit();
        $session = $this->share->session() ?? throw new SessionNotFound('the session has ended');

        return $session->update($key, $fn);
    }

    /**
     * Returns all attributes as one snapshot, without the values that belong to a single request.
     *
     * @return array<array-key, mixed>
     */
    public function all(): array
    {
        $committed = $this->attempt(
            'cannot read the attributes',
            fn (): mixed => $this->share->session()?->all(),
        );
        $committed = \is_array($committed) ? $committed : [];
        $this->snapshot = [$committed, clone $this->journal];
        $this->queued = $this->asked = [];

        return $this->journal->readAll($committed);
    }

    /**
     * Withdraws the messages that this object queued and the requests that it registered, since the last {@see all()}
     * if there was one. Records the difference between the attributes at that time and $attributes, so that writes of
     * other requests remain. The SDK's own keys (`_mcp`) stay unchanged.
     *
     * @param array<array-key, mixed> $attributes
     */
    public function hydrate(array $attributes): void
    {
        if ($this->snapshot === null) {
            [$queued, $asked] = [$this->queued, $this->asked];
            $this->all();
            [$this->queued, $this->asked] = [$queued, $asked];
        }

        $this->share->outbox->remove($this->queued);
        \array_map($this->share->questions->finish(...), $this->asked);
        $this->queued = $this->asked = $this->broadcasts = [];
        [$committed, $journal] = $this->snapshot ?? [[], new Journal()];
        $this->journal = $journal->only('_mcp');
        [$this->unstorable, $this->hasUnstorable] = [[], false];

        [$from, $to] = [\array_diff_key($committed, ['_mcp' => 1]), \array_diff_key($attributes, ['_mcp' => 1])];
        $this->recordChanges($from, $to, '');
        $this->snapshot = null;
    }

    /**
     * Returns all attributes, like {@see all()}.
     *
     * @return array<array-key, mixed>
     */
    public function jsonSerialize(): array
    {
        return $this->all();
    }

    public function __destruct()
    {
        if ($this->isResolved && !$this->journal->isEmpty() && $this->share->hasFiberEnded()) {
            $this->save();
        }
    }

    // Outgoing messages
    /** @return list<array<string, mixed>> */
    private function queue(): array
    {
        if (!$this->exchange->serves($this->share->id)) {
            return $this->broadcasts;
        }

        $rows = $this->share->queue(!$this->isResolved);
        $this->shownRows = \array_keys($rows);

        return $this->shownMessages = \array_values($rows);
    }

    /** @param array<array-key, mixed> $messages */
    private function setQueue(array $messages): void
    {
        if (!$this->exchange->serves($this->share->id)) {
            $this->broadcasts = \array_values(\array_filter($messages, 'is_array'));

            return;
        }

        $kept = [];

        foreach ($messages as $message) {
            $shown = \array_search($message, \array_diff_key($this->shownMessages, $kept), true);

            if (\is_int($shown)) {
                $kept[$shown] = true;
            } elseif (\is_array($message) && !$this->share->questions->refuses($message)) {
                $this->queued[] = $this->share->outbox->append($message);
            }
        }

        $this->share->outbox->remove(\array_values(\array_diff_key($this->shownRows, $kept)));
        $this->shownRows = \array_values(\array_intersect_key($this->shownRows, $kept));
        $this->shownMessages = \array_values(\array_intersect_key($this->shownMessages, $kept));
    }

    // Pending requests
    private function deliver(string $key, mixed $response): void
    {
        try {
            $this->share->questions->deliver(Key::responseId($key), $response);
        } catch (ExceptionInterface $e) {
            $this->exchange->refusal = $e;

            throw $e;
        }
    }

    /** @return array<int, array{request_id: int, timeout: int, timestamp: int}> */
    private function pending(): array
    {
        $entries = $this->isResolved ? $this->share->questions->allEntries() : $this->share->pending();
        $this->shownPending = \array_map(static fn (array $entry): bool => $entry['timeout'] === 0, $entries);

        return $entries;
    }

    /** @param array<array-key, mixed> $entries */
    private function setPending(array $entries): void
    {
        foreach ($entries as $id => $entry) {
            if (\is_int($id) && !isset($this->shownPending[$id])) {
                $timeout = \is_array($entry) ? $entry['timeout'] ?? null : null;
                $this->share->ask($id, \is_numeric($timeout) ? (int) $timeout : 120);
                $this->asked[] = $id;
                $this->shownPending[$id] = false;
            }
        }

        foreach ($this->shownPending as $id => $isTimedOut) {
            // The SDK up to 0.8 never drops a timed-out entry, and would use it for the next question.
            if ($isTimedOut || !isset($entries[$id])) {
                $this->share->questions->finish($id);
                unset($this->shownPending[$id]);
            }
        }
    }

    /** @return array<array-key, mixed>|null */
    private function response(string $key): ?array
    {
        $id = Key::responseId($key);

        return $id === null ? null : $this->share->response($id);
    }

    // Attributes

    private function attribute(string $key): mixed
    {
        return $this->journal->read($key, function () use ($key): mixed {
            if (!Key::isStorable($key)) {
                return null;
            }

            $value = $this->attempt(
                "cannot read the attribute \"$key\"",
                fn (): mixed => $this->share->session()?->get($key),
            );

            if ($this->share->isCollection($key)) {
                $this->collections[$key] = \is_array($value) ? $value : [];
            }

            return $value;
        });
    }

    private function setAttribute(string $key, mixed $value): void
    {
        $this->trackCall();

        if (!Key::isStorable($key)) {
            $this->unstorable[$key] = $value;

            return;
        }

        if (!Value::isData($value)) {
            $shown = Key::shown($key);
            $this->share->logger()->info("mcp-state: the object under $shown is kept for this request only");
            $this->journal->drop($key);
            $this->memory->set($key, $value);

            return;
        }

        $this->memory->forget($key);

        if (\is_array($value) && $this->share->isCollection($key)) {
            $this->journal->merge($key, ElementChange::between($this->collections[$key] ?? [], $value));
        } else {
            $this->journal->set($key, $value);
        }
    }

    private function forgetAttribute(string $key): void
    {
        $this->trackCall();
        $this->memory->forget($key);

        if (Key::isStorable($key)) {
            $this->journal->forget($key);
        } else {
            unset($this->unstorable[$key]);
        }
    }

    /**
     * Records the writes that lead from one state of the attributes below $prefix to another.
     *
     * @param array<array-key, mixed> $from
     * @param array<array-key, mixed> $to
     */
    private function recordChanges(array $from, array $to, string $prefix): void
    {
        foreach ($to as $name => $value) {
            $before = $from[$name] ?? null;

            if ($value === $before) {
                continue;
            }

            if (self::isNested($value) && self::isNested($before)) {
                $this->recordChanges($before, $value, "$prefix$name.");
            } else {
                $this->setAttribute($prefix . $name, $value);
            }
        }

        foreach (\array_keys(\array_diff_key($from, $to)) as $name) {
            $this->forgetAttribute($prefix . $name);
        }
    }

    /**
     * Tells whether dotted keys can name the elements of $value.
     *
     * @phpstan-assert-if-true array<array-key, mixed> $value
     */
    private static function isNested(mixed $value): bool
    {
        return \is_array($value) && !\array_is_list($value) && Key::isStorable(\implode('.', \array_keys($value)))
            && !\str_contains(\implode('', \array_keys($value)), '.');
    }

    private function putIfAbsent(string $key, mixed $value): void
    {
        $isStorable = Value::isData($value) && Value::isStorable($value) && Key::isStorable($key);

        if (Key::of($key) !== Key::Attribute || !$isStorable) {
            if (!$this->has($key)) {
                $this->set($key, $value);
            }

            return;
        }

        if ($this->memory->get($key) === null) {
            $this->attempt("cannot store the attribute \"$key\"", function () use ($key, $value): ?bool {
                $this->commit();

                return $this->share->session()?->putIfAbsent($key, $value);
            });
        }
    }

    /**
     * Commits the storable writes, and reports the others.
     *
     * @return bool whether the session still exists
     *
     * @throws ExceptionInterface
     */
    private function commit(): bool
    {
        $keys = \array_map('strval', \array_keys($this->unstorable));
        $this->reportUnstorable($keys, 'the store does not accept its key');
        $this->reportUnstorable($this->journal->dropUnstorable(), 'JSON cannot express its value');
        $this->unstorable = [];
        $exists = $this->share->commit($this->journal, $this->exchange->serves($this->share->id));

        if ($exists) {
            $this->journal = new Journal();
            $this->collections = [];
        }

        return $exists;
    }

    /** @param list<string> $keys */
    private function reportUnstorable(array $keys, string $why): void
    {
        foreach ($keys as $key) {
            $this->share->logger()->warning('mcp-state: the attribute ' . Key::shown($key) . " is not kept: $why");
            $this->hasUnstorable = true;
        }
    }

    /**
     * Returns the result of $do. If $do fails, logs the failure. A handler receives the exception; for the SDK's loop,
     * and if the session has ended, the result is null.
     *
     * @param \Closure(): mixed $do
     *
     * @throws ExceptionInterface
     */
    private function attempt(string $failure, \Closure $do): mixed
    {
        try {
            return $do();
        } catch (SessionNotFound $e) {
            $this->share->failed($failure, $e);
        } catch (ExceptionInterface $e) {
            $this->share->failed($failure, $e);

            if ($this->isResolved) {
                throw $e;
            }
        }

        return null;
    }

    /** Returns the client's request whose handler makes this call; null if no handler does. */
    private function trackCall(): ?Call
    {
        $fiber = $this->isResolved ? \Fiber::getCurrent() : null;

        if ($fiber !== null && $fiber !== $this->creatorFiber?->get()) {
            return $this->share->trackCall($fiber);
        }

        return null;
    }
}
