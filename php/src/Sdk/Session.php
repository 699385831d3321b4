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
 * A session as the SDK and its handlers see it, on the store that all processes share.
 *
 * **Attributes.** `set()` and `forget()` are noted in this object and committed by {@see save()}, as one patch of just the
 * keys that were written; what is never saved is discarded. Reads are what was noted here over the latest committed state,
 * so what another request saves appears between two of them; {@see all()} is one snapshot. A write of a key replaces
 * everything below it. Values are replaced whole, lists too, but for `resource_subscriptions` and the keys that the
 * manager was told: of these, elements are added and removed one by one. Null counts as absent.
 *
 * After a question to the client, or a progress notification, the SDK does not save the object that the handler holds. It
 * is committed when the handler ends normally; call `save()` to have it earlier, and to hear whether it worked.
 *
 * Get-then-set is not atomic, whatever lies in between. {@see update()}, {@see pull()} and `set(…, overwrite: false)` are.
 *
 * **Objects** other than plain data (`stdClass`, `JsonSerializable`, enums), and everything under the name of a class of
 * the SDK, stay in the memory of this request: they are never stored.
 *
 * **What cannot be kept**, a value that JSON cannot express or a key that the store cannot hold, makes the next `save()`
 * say false. Everything else is committed.
 */
final class Session implements SessionInterface
{
    private Journal $journal;

    /** @var list<int|string> numbers of the queued messages this object was shown last */
    private array $shownRows = [];

    /** @var list<array<string, mixed>> the same messages */
    private array $shownMessages = [];

    /** @var array<int, bool> requests this object was shown last: id => whether as timed out */
    private array $shownPending = [];

    /** @var list<int> numbers of the messages this object queued since all() */
    private array $queued = [];

    /** @var list<int> ids of the requests this object registered since all() */
    private array $asked = [];

    /** @var list<array<string, mixed>> messages to a session that this exchange does not serve, until save() */
    private array $broadcasts = [];

    /** @var array<array-key, mixed> values under keys that the store cannot hold, until save() */
    private array $unstorable = [];

    /** Whether something was not kept that was noted since the last save(). */
    private bool $hasLost = false;

    /** @var array<string, array<array-key, mixed>> collections as they were committed when this object read them */
    private array $collections = [];

    /** @var array{array<array-key, mixed>, Journal}|null what all() gave: the committed attributes and the journal then */
    private ?array $snapshot = null;

    private readonly RequestMemory $memory;

    /** @var \WeakReference<\Fiber<mixed, mixed, mixed, mixed>>|null the fiber that made this object: none of a handler */
    private readonly ?\WeakReference $madeIn;

    /** @internal Made by {@see SessionManager}. */
    public function __construct(
        private readonly Uuid $uuid,
        private readonly Share $share,
        private readonly Exchange $exchange,
        /** The object that the SDK resolved for the client's message; the others are its loop's. */
        private readonly bool $isResolved,
    ) {
        $this->journal = new Journal();
        $this->memory = $exchange->memory();
        $fiber = \Fiber::getCurrent();
        $this->madeIn = $fiber === null ? null : \WeakReference::create($fiber);
    }

    public function getId(): Uuid
    {
        $call = $this->noteFiber();

        if ($call !== null) {
            // The SDK asks for the id when a handler is about to ask the client.
            $call->requestId ??= CallStack::requestId();
        }

        return $this->uuid;
    }

    /**
     * Commits what was noted here and says that the session is in use.
     *
     * While the store cannot be asked, saving nothing succeeds: the SDK would throw away what its tool has to say.
     *
     * @return bool whether the session, as far as can be seen, still exists and everything was committed. False where
     *              something cannot be kept, which the log names; the rest is committed then. The session is never
     *              created anew
     */
    public function save(): bool
    {
        $hasNothing = $this->journal->isEmpty() && $this->broadcasts === [] && !$this->hasLost;

        try {
            foreach ($this->broadcasts as $message) {
                $this->share->outbox->broadcast($message);
            }

            $this->broadcasts = [];
            $exists = $this->commit();
            [$hasLost, $this->hasLost] = [$this->hasLost, false];

            return $exists && !$hasLost;
        } catch (ExceptionInterface $e) {
            $this->share->failed('the session could not be saved', $e);

            return $hasNothing && $this->share->session() !== null;
        }
    }

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

    public function set(string $key, mixed $value, bool $overwrite = true): void
    {
        if (!$overwrite) {
            $this->putIfAbsent($key, $value);

            return;
        }

        match (Key::of($key)) {
            Key::RequestId => null, // The number was taken by the read.
            Key::Queue => $this->setQueue(\is_array($value) ? $value : []),
            Key::Pending => $this->setPending(\is_array($value) ? $value : []),
            Key::Response => $value === null ? null : $this->deliver($key, $value),
            Key::Request => $this->memory->set($key, $value),
            Key::Attribute => $this->setAttribute($key, $value),
        };
    }

    public function has(string $key): bool
    {
        return $this->get($key) !== null;
    }

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

    /** Takes back everything that {@see hydrate()} takes back, and notes that all attributes are to be removed. */
    public function clear(): void
    {
        $this->hydrate([]);
    }

    /** Reads and removes a value at once, after committing what was noted here: of several callers exactly one gets it. */
    public function pull(string $key, mixed $default = null): mixed
    {
        $value = $this->memory->get($key);

        if ($value !== null || Key::of($key) !== Key::Attribute) {
            $value ??= $this->get($key);
            $this->forget($key);

            return $value ?? $default;
        }

        return $this->tried("\"$key\" could not be taken", function () use ($key): mixed {
            $this->commit();

            return Key::isStorable($key) ? $this->share->session()?->take($key) : null;
        }) ?? $default;
    }

    /**
     * Replaces the value under $key by what $fn makes of it, without losing anybody's update: commits what was noted here
     * and then the new value.
     *
     * @param \Closure(mixed): mixed $fn gets the current value, null when there is none, and must do nothing but compute:
     *                                   it runs again when another request changed the value meanwhile
     *
     * @return mixed what was stored
     *
     * @throws ExceptionInterface also when the session is gone
     * @throws \McpState\Exception\InvalidArgument for a key that is not an attribute's
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

    /** @return array<array-key, mixed> all attributes: one snapshot, without what belongs to single requests */
    public function all(): array
    {
        $committed = $this->tried(
            'attributes could not be read',
            fn (): mixed => $this->share->session()?->all(),
        );
        $committed = \is_array($committed) ? $committed : [];
        $this->snapshot = [$committed, clone $this->journal];
        $this->queued = $this->asked = [];

        return $this->journal->lookAtAll($committed);
    }

    /**
     * Takes back what this object queued and asked, since {@see all()} where that was called, and notes the difference
     * between the attributes as it saw them and $attributes: what others wrote meanwhile stays. The SDK's own keys
     * (`_mcp`) are left alone.
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
        [$this->unstorable, $this->hasLost] = [[], false];

        $this->note(\array_diff_key($committed, ['_mcp' => 1]), \array_diff_key($attributes, ['_mcp' => 1]), '');
        $this->snapshot = null;
    }

    /** @return array<array-key, mixed> */
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

    // The queue

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

    // Requests to the client

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
        $entries = $this->isResolved ? $this->share->questions->entriesOfAll() : $this->share->pending();
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
            // The SDK up to 0.8 never drops what timed out, and would show it to the next question.
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
        return $this->journal->look($key, function () use ($key): mixed {
            if (!Key::isStorable($key)) {
                return null;
            }

            $value = $this->tried("\"$key\" could not be read", fn (): mixed => $this->share->session()?->get($key));

            if ($this->share->isCollection($key)) {
                $this->collections[$key] = \is_array($value) ? $value : [];
            }

            return $value;
        });
    }

    private function setAttribute(string $key, mixed $value): void
    {
        $this->noteFiber();

        if (!Key::isStorable($key)) {
            $this->unstorable[$key] = $value;

            return;
        }

        if (!Value::isData($value)) {
            $this->share->logger()->info('mcp-state: the object under ' . Key::shown($key) . ' lasts for this request only');
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
        $this->noteFiber();
        $this->memory->forget($key);

        if (Key::isStorable($key)) {
            $this->journal->forget($key);
        } else {
            unset($this->unstorable[$key]);
        }
    }

    /**
     * Notes what leads from one state of the attributes below $prefix to another.
     *
     * @param array<array-key, mixed> $from
     * @param array<array-key, mixed> $to
     */
    private function note(array $from, array $to, string $prefix): void
    {
        foreach ($to as $name => $value) {
            $before = $from[$name] ?? null;

            if ($value === $before) {
                continue;
            }

            if (self::isNested($value) && self::isNested($before)) {
                $this->note($before, $value, "$prefix$name.");
            } else {
                $this->setAttribute($prefix . $name, $value);
            }
        }

        foreach (\array_keys(\array_diff_key($from, $to)) as $name) {
            $this->forgetAttribute($prefix . $name);
        }
    }

    /**
     * Whether the parts of $value can be named by dotted keys.
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
            $this->tried("\"$key\" could not be put", function () use ($key, $value): ?bool {
                $this->commit();

                return $this->share->session()?->putIfAbsent($key, $value);
            });
        }
    }

    /**
     * Commits what can be kept, and notes what cannot.
     *
     * @return bool whether the session still exists
     *
     * @throws ExceptionInterface
     */
    private function commit(): bool
    {
        $this->lose(\array_map('strval', \array_keys($this->unstorable)), 'the store cannot hold a key like this');
        $this->lose($this->journal->dropUnstorable(), 'JSON cannot express its value');
        $this->unstorable = [];
        $exists = $this->share->commit($this->journal, $this->exchange->serves($this->share->id));

        if ($exists) {
            $this->journal = new Journal();
            $this->collections = [];
        }

        return $exists;
    }

    /** @param list<string> $keys */
    private function lose(array $keys, string $why): void
    {
        foreach ($keys as $key) {
            $this->share->logger()->warning('mcp-state: the attribute ' . Key::shown($key) . " is not kept: $why");
            $this->hasLost = true;
        }
    }

    /**
     * What $do gives. Where it fails: null for a session that is gone and for the SDK's loop, an exception for a handler.
     *
     * @param \Closure(): mixed $do
     *
     * @throws ExceptionInterface
     */
    private function tried(string $otherwise, \Closure $do): mixed
    {
        try {
            return $do();
        } catch (SessionNotFound $e) {
            $this->share->failed($otherwise, $e);
        } catch (ExceptionInterface $e) {
            $this->share->failed($otherwise, $e);

            if ($this->isResolved) {
                throw $e;
            }
        }

        return null;
    }

    /** Notes the client's request whose handler calls; null where none does. */
    private function noteFiber(): ?Call
    {
        $fiber = $this->isResolved ? \Fiber::getCurrent() : null;

        if ($fiber !== null && $fiber !== $this->madeIn?->get()) {
            return $this->share->noteFiber($fiber);
        }

        return null;
    }
}
