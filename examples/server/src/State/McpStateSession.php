<?php

declare(strict_types=1);

namespace McpState\Example\State;

use McpState\DuplicatePolicy;
use McpState\Exception\OwnerExpired;
use McpState\Exception\SessionNotFound;
use McpState\Owner;
use McpState\OwnerKind;
use McpState\PendingStatus;
use McpState\Session;

/**
 * A session in mcp-state. Each method consists of one or two operations of the library, and each operation is atomic.
 *
 * The exchange is an *owner*. Its messages, questions and in-flight requests belong to it: no other process can take
 * its messages, claim its answers or see its timeouts. It attaches when it first needs an owner, which an answer or a
 * notification from the client never does. It ends with the exchange, even after a fatal error or a kill.
 *
 * State that no other process needs stays in this process. A plain reply cannot be cancelled while it is written, so it
 * needs no owner and writes nothing to the store.
 */
final class McpStateSession implements SessionState
{
    private ?Owner $owner = null;

    /** The cursor of the last wait. The next wait returns for newer events. */
    private int $cursor = 0;

    /** @var list<int|string> ids of the client's requests that this exchange has in flight in the store */
    private array $serving = [];

    /** @var list<string> the results for a plain reply */
    private array $replies = [];

    public function __construct(private readonly Session $session, private readonly bool $streams)
    {
    }

    public function id(): string
    {
        return $this->session->id;
    }

    public function get(string $key): mixed
    {
        return $this->session->get($key);
    }

    public function all(): array
    {
        return $this->session->all();
    }

    public function set(array $values): void
    {
        $this->session->patch($values);
    }

    public function update(string $key, \Closure $change): void
    {
        $this->session->update($key, $change);
    }

    public function begin(int|string $id, bool $reject): bool
    {
        if (!$this->streams && !$reject) {
            return true;
        }
        $policy = $reject ? DuplicatePolicy::Reject : DuplicatePolicy::Isolate;
        $begun = $this->asOwner(static fn (Owner $owner) => $owner->beginRequest($id, $policy));
        if ($begun) {
            $this->serving[] = $id;
        }

        return $begun;
    }

    public function finish(int|string $id): bool
    {
        if (!in_array($id, $this->serving, true)) {
            return false;
        }
        $this->serving = array_values(array_filter($this->serving, static fn ($other) => $other !== $id));

        return $this->asOwner(static fn (Owner $owner) => $owner->finishRequest($id)) === true;
    }

    public function cancel(int|string $id): void
    {
        $this->session->cancelRequest($id);
    }

    public function reply(string $message): void
    {
        $this->replies[] = $message;
    }

    public function notify(string $message): void
    {
        $this->asOwner(static fn (Owner $owner) => $owner->enqueueOutgoing($message));
    }

    public function broadcast(string $message): void
    {
        $this->session->enqueueBroadcast($message);
    }

    public function take(): array
    {
        [$messages, $this->replies] = [$this->replies, []];
        if ($this->owner !== null && $this->streams) {
            foreach ($this->asOwner(static fn (Owner $owner) => $owner->takeOutgoing()) as $message) {
                $messages[] = $message->body;
            }
        }

        return $messages;
    }

    public function ask(array $message, int $timeoutMs): int
    {
        return $this->asOwner(static fn (Owner $owner) => $owner->sendRequest($message, $timeoutMs))->id;
    }

    public function claim(?int $id): Answer
    {
        foreach ($this->serving as $request) {
            if ($this->asOwner(static fn (Owner $owner) => $owner->isCancelled($request))) {
                return new Answer(PendingStatus::Cancelled);
            }
        }
        if ($id === null) {
            return new Answer(PendingStatus::Unknown);
        }
        $claim = $this->asOwner(static fn (Owner $owner) => $owner->pendingRequest($id)->claim());

        return new Answer($claim->status, $claim->isAnswered() ? $claim->json() : null, $claim->remainingMs ?? 0);
    }

    public function wait(int $atMostMs): void
    {
        $this->cursor = $this->asOwner(fn (Owner $owner) => $owner->wait($atMostMs, $this->cursor))->cursor;
    }

    public function deliver(mixed $id, string $response): ?string
    {
        return $this->session->deliverResponse($id, $response)->reason?->name;
    }

    public function end(): void
    {
        try {
            $this->owner?->detach();
        } catch (SessionNotFound) {
            // The session was destroyed meanwhile, together with its owners.
        }
        $this->owner = null;
    }

    /**
     * Runs an operation of the owner. The store releases an owner that was silent for longer than the session's TTL and
     * an hour. The exchange then continues with a new owner.
     *
     * @template T
     * @param \Closure(Owner): T $operation
     * @return T
     */
    private function asOwner(\Closure $operation): mixed
    {
        try {
            return $operation($this->owner ??= $this->attach());
        } catch (OwnerExpired) {
            return $operation($this->owner = $this->attach());
        }
    }

    private function attach(): Owner
    {
        return $this->session->attach($this->streams ? OwnerKind::Stream : OwnerKind::Reply);
    }
}
