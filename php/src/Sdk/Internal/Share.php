<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

use McpState\Exception\ExceptionInterface;
use McpState\Exception\LimitExceeded;
use McpState\Exception\OwnerExpired;
use McpState\Exception\SessionNotFound;
use McpState\Interest;
use McpState\Owner;
use McpState\OwnerKind;
use McpState\PendingStatus;
use McpState\Session;
use McpState\WaitStatus;
use Psr\Log\LoggerInterface;

/**
 * What one exchange has of one session: its outgoing messages, its requests to the client, its owner in the store.
 *
 * - Its own messages stay here, in the process that delivers them; nobody else could. Broadcasts come from the store.
 * - Its requests to the client are in the store, where the answers arrive. The store alone decides how they end; what
 *   the SDK is shown never lets it decide by its own clock.
 * - The owner is attached when something needs it, so that a plain call writes nothing. From then on the exchange counts
 *   as a stream; a JSON reply never sees a broadcast.
 * - An ask that the store refuses, or whose session ended, is *answered here* with an error, which the SDK hands to the
 *   tool that asked. Nothing here throws, unless its documentation says so: an exception in the SDK's loop would end the
 *   stream.
 *
 * @internal
 */
final class Share
{
    /** Where a request id comes from when the store gives none: far from those it gives. */
    private const LOCAL_IDS = 1 << 52;

    /** The longest timeout the store takes: ten years. */
    private const MAX_TIMEOUT_S = 315_360_000;

    private ?Owner $owner = null;

    /** An owner that only says that the session is in use; a stream's takes its place. */
    private bool $isOwnerReply = false;

    /** @var array<int|string, array<string, mixed>> messages as the SDK queued them, by a number that is never used twice */
    private array $queue = [];

    private int $rows = 0;

    /** @var array<int, int> what this exchange asked: id => hrtime of the deadline, which counts while the store is away */
    private array $asked = [];

    /** @var array<int, array<string, mixed>> the answers that were made here: id => JSON-RPC error */
    private array $refused = [];

    /** Whether the next pending read of the loop is the first after a queue read. */
    private bool $isTurnStart = false;

    /** Whether the SDK's loop runs: a stream, not a JSON reply. */
    private bool $isStream;

    /** Whether the exchange is over. */
    private bool $hasEnded = false;

    /** This exchange's place among those that wait, where their number is limited. */
    private ?Owner $place = null;

    /** Whether the fiber has been given something to go on with since the last turn of the loop began. */
    private bool $isFiberResumed = false;

    /** @var \WeakReference<\Fiber<mixed, mixed, mixed, mixed>>|null */
    private ?\WeakReference $fiber = null;

    public function __construct(
        public readonly string $id,
        private ?Session $session,
        private readonly Settings $settings,
    ) {
        $this->isStream = $settings->isOneStream;
    }

    public function __destruct()
    {
        $this->end();
    }

    public function logger(): LoggerInterface
    {
        return $this->settings->logger;
    }

    /** The session in the store; null when it is gone. */
    public function session(): ?Session
    {
        return $this->session;
    }

    public function isCollection(string $key): bool
    {
        return \in_array($key, $this->settings->collections, true);
    }

    // Messages to the client

    /**
     * The messages that the reader may deliver.
     *
     * @return array<int|string, array<string, mixed>> by number
     */
    public function queue(bool $isLoop): array
    {
        if ($isLoop) {
            $this->isTurnStart = true;
            $this->isFiberResumed = $this->fiber?->get()?->isTerminated() ?? false;
        }

        return $this->queue + ($isLoop && $this->isStream ? $this->broadcasts() : []);
    }

    /**
     * @param array<string, mixed> $row
     *
     * @return int|null its number; null when it asks something that was refused, which the client must not see
     */
    public function append(array $row): ?int
    {
        if ($this->refused !== [] && \is_string($row['message'] ?? null)) {
            $message = \json_decode($row['message'], true);

            if (\is_array($message) && isset($message['method'], $this->refused[$message['id'] ?? ''])) {
                return null;
            }
        }

        $this->queue[++$this->rows] = $row;

        return $this->rows;
    }

    /** @param list<int|string> $numbers */
    public function removeRows(array $numbers): void
    {
        $upTo = 0;

        foreach ($numbers as $number) {
            if (\is_int($number)) {
                unset($this->queue[$number]);
            } else {
                $upTo = \max($upTo, (int) \substr($number, 1));
            }
        }

        if ($upTo > 0) {
            $this->asOwner('broadcasts could not be acknowledged', static fn (Owner $owner) => $owner->acknowledge($upTo));
        }
    }

    /**
     * Hands a message to whichever stream of the session takes it first: the caller serves no exchange of it.
     *
     * @param array<string, mixed> $row
     *
     * @throws ExceptionInterface
     */
    public function broadcast(array $row): void
    {
        $message = \is_string($row['message'] ?? null) ? $row['message'] : '';
        $context = \is_array($row['context'] ?? null) ? $row['context'] : [];
        $this->session?->enqueueBroadcast($message, (string) Value::encode($context));
    }

    // Requests to the client

    /** A number for the next request to the client, which no other has. */
    public function nextRequestId(): int
    {
        try {
            if ($this->session !== null) {
                return $this->session->nextRequestId();
            }

            $why = 'the session has ended';
        } catch (ExceptionInterface $e) {
            $this->failed('no request id', $e);
            $why = self::reason($e);
        }

        $id = self::LOCAL_IDS + \random_int(0, self::LOCAL_IDS - 1);
        $this->refuse($id, $why);

        return $id;
    }

    /** Registers what the exchange asks the client, for $timeoutS seconds. */
    public function ask(int $id, int $timeoutS): void
    {
        $timeoutMs = 1000 * \max(0, \min($timeoutS, self::MAX_TIMEOUT_S));
        $this->asked[$id] = \hrtime(true) + 1_000_000 * $timeoutMs;

        if (isset($this->refused[$id])) {
            return;
        }

        try {
            if ($this->owner() === null) {
                $this->refuse($id, 'the session has ended');

                return;
            }

            if (!$this->enterWaitingRoom()) {
                $this->logger()->warning('mcp-state: a question to the client is refused: no place to wait');
                $this->refuse($id, "{$this->settings->waitingRoom?->places()} exchanges wait for their clients already");

                return;
            }

            try {
                $this->owner()?->registerPending($id, $timeoutMs);
            } catch (OwnerExpired) {
                $this->ownerHasExpired($id);
                $this->owner()?->registerPending($id, $timeoutMs);
            }
        } catch (ExceptionInterface $e) {
            $this->failed('a question to the client is refused', $e);
            $this->refuse($id, self::reason($e));
        }
    }

    /** The SDK is done with a request: what it was shown counts as taken. */
    public function finish(int $id): void
    {
        if (!isset($this->asked[$id])) {
            return; // Somebody else's.
        }

        unset($this->asked[$id]);

        if ($this->asked === []) {
            $this->leaveWaitingRoom();
        }

        if (isset($this->refused[$id])) {
            unset($this->refused[$id]);

            return;
        }

        $this->asOwner("request $id could not be claimed", static function (Owner $owner) use ($id): void {
            $request = $owner->pendingRequest($id);

            if ($request->claim()->status === PendingStatus::Waiting) {
                $request->cancel();
                $request->claim();
            }
        });
    }

    /**
     * This exchange's requests as the SDK keeps them, by id. An entry that has timed out says so until it is dropped.
     *
     * The loop's first look after it has read the queue sleeps until one of them is resolved or a broadcast has come.
     *
     * @return array<int, array{request_id: int, timeout: int, timestamp: int}>
     */
    public function asked(): array
    {
        $mayBlock = $this->isTurnStart && $this->settings->mayBlock;
        $this->isTurnStart = false;
        $this->isStream = true;
        $entries = $this->look($waitMs);

        while ($mayBlock && $waitMs !== null) {
            $result = $this->asOwner('waiting failed', static fn (Owner $owner) => $owner->wait(
                \min(1000, $waitMs + 1),
                0,
                Interest::Resolution,
                Interest::Message,
            ));
            $entries = $this->look($waitMs);
            $mayBlock = $result?->status === WaitStatus::Deadline || $result?->status === WaitStatus::Interrupted;

            if ($waitMs !== null && $this->settings->whileWaiting !== null) {
                ($this->settings->whileWaiting)();
            }
        }

        if ($waitMs === null) {
            $this->isFiberResumed = true;
        }

        return $entries;
    }

    /**
     * Everybody's requests of the session, all as if they waited: whether an answer comes too late is the store's to
     * say, and to count.
     *
     * @return array<int, array{request_id: int, timeout: int, timestamp: int}>
     */
    public function askedByAnyone(): array
    {
        $ids = \array_keys(\array_intersect_key($this->refused, $this->asked));

        try {
            foreach ($this->session?->allPending() ?? [] as $info) {
                $ids[] = $info->id;
            }
        } catch (ExceptionInterface $e) {
            $this->failed('pending requests could not be read', $e);
            $ids = [...$ids, ...\array_keys($this->asked)];
        }

        return self::entries($ids);
    }

    /**
     * The client's answer to a request of this exchange, as the SDK keeps it.
     *
     * @return array<array-key, mixed>|null
     */
    public function response(int $id): ?array
    {
        if (!isset($this->asked[$id])) {
            return null;
        }

        $response = $this->refused[$id] ?? $this->decoded($this->asOwner(
            "the answer to request $id could not be read",
            static fn (Owner $owner) => $owner->pendingRequest($id)->peek(),
        )) ?? $this->refused[$id] ?? null;
        $this->isFiberResumed = $this->isFiberResumed || $response !== null;

        return $response;
    }

    /**
     * Hands a client's answer to the exchange that waits for it.
     *
     * @throws ExceptionInterface when the store could not take it: the client may send it again
     */
    public function deliver(?int $id, mixed $response): void
    {
        $sent = \is_array($response) ? $response['id'] ?? null : null;
        $shown = \is_string($sent) ? '"' . \substr($sent, 0, 40) . '"' : \json_encode($sent);

        if ($id === null || $sent !== $id) {
            $this->logger()->warning("mcp-state: the answer to request $shown is discarded: Unknown");

            return;
        }

        try {
            $delivery = $this->session?->deliverResponse($id, (string) Value::encode($response));
        } catch (SessionNotFound) {
            $this->session = null;
            $delivery = null;
        } catch (LimitExceeded $e) {
            // Whoever asked must not wait in vain for what cannot be stored.
            $delivery = $this->session?->deliverResponse(
                $id,
                (string) Value::encode(self::error($id, 'The client\'s answer was refused: ' . $e->getMessage())),
            );
        }

        if ($delivery === null) {
            $this->logger()->warning("mcp-state: the answer to request $shown is discarded: the session has ended");
        } elseif ($delivery->reason !== null) {
            $this->logger()->warning("mcp-state: the answer to request $shown is discarded: {$delivery->reason->name}");
        }
    }

    // Attributes

    /**
     * Commits a journal.
     *
     * @param bool $isServed whether this is the session that the exchange serves
     *
     * @return bool whether the session still exists
     *
     * @throws ExceptionInterface
     */
    public function commit(Journal $journal, bool $isServed): bool
    {
        if ($this->session === null) {
            return false;
        }

        try {
            if ($journal->isEmpty()) {
                return $this->session->touch() || $this->lose();
            }

            if ($isServed && $this->owner === null && !$this->hasEnded) {
                // It tells a session that is used from one that a flood of `initialize` left.
                $this->attach(OwnerKind::Reply);
            }

            $values = [];

            foreach ($journal->values() as $key => $value) {
                $storable = Value::storable($value);

                if ($storable === null && $value !== null) {
                    $this->logger()->error("mcp-state: the value of \"$key\" cannot become JSON and is not kept");
                } else {
                    $values[$key] = $storable;
                }
            }

            if ($values !== [] || $journal->removals() !== []) {
                $this->session->patch($values, $journal->removals());
            }

            foreach ($journal->elementChanges() as $key => $change) {
                $this->session->update((string) $key, $change->applyTo(...));
            }

            return true;
        } catch (SessionNotFound) {
            return $this->lose();
        }
    }

    // The fiber that serves the request, and the end

    /** Notes the fiber that runs now as the one that serves the client's request. */
    public function noteFiber(): void
    {
        $current = \Fiber::getCurrent();

        if ($current !== null && $this->fiber === null) {
            $this->fiber = \WeakReference::create($current);
        }
    }

    /** Whether a fiber that was resumed by the loop has come to its end, when nothing holds on to it any longer. */
    public function hasFiberEnded(): bool
    {
        return $this->isStream && $this->isFiberResumed;
    }

    /** Whether the exchange waits for nothing here. */
    public function isIdle(): bool
    {
        return $this->asked === [] && $this->queue === [];
    }

    /** Ends the owner. What it did not deliver goes with it. */
    public function end(): void
    {
        if ($this->queue !== []) {
            $this->logger()->notice('mcp-state: ' . \count($this->queue)
                . ' messages were queued after their exchange had written its last; they are dropped');
            $this->queue = [];
        }

        $this->leaveWaitingRoom();

        try {
            $this->owner?->detach();
        } catch (ExceptionInterface $e) {
            $this->failed('an owner could not be detached', $e);
        }

        $this->owner = null;
        $this->hasEnded = true;
    }

    public function failed(string $what, ExceptionInterface $e): void
    {
        if ($e instanceof SessionNotFound) {
            $this->lose();
        } else {
            $this->logger()->error("mcp-state: $what: {$e->getMessage()}", ['exception' => $e]);
        }
    }

    /** The session is gone. */
    private function lose(): bool
    {
        $this->session = null;
        $this->owner = null;

        return false;
    }

    /**
     * The owner of a stream, attached when it is not.
     *
     * @throws ExceptionInterface
     */
    private function owner(): ?Owner
    {
        if ($this->isOwnerReply) {
            $this->owner?->detach();
            $this->owner = null;
        }

        return $this->owner ?? $this->attach(OwnerKind::Stream);
    }

    /** @throws ExceptionInterface */
    private function attach(OwnerKind $kind): ?Owner
    {
        $this->isOwnerReply = $kind === OwnerKind::Reply;

        return $this->owner = $this->session?->attach($kind, $this->settings->leaseMs);
    }

    /** @throws ExceptionInterface */
    private function enterWaitingRoom(): bool
    {
        $room = $this->settings->waitingRoom;

        return $room === null || ($this->place ??= $room->enter()) !== null;
    }

    private function leaveWaitingRoom(): void
    {
        try {
            $this->place?->detach();
        } catch (ExceptionInterface) {
            // It is gone then.
        }

        $this->place = null;
    }

    /** The next call attaches another, but what this one asked is lost. */
    private function ownerHasExpired(?int $except = null): void
    {
        $this->owner = null;

        foreach (\array_keys($this->asked) as $id) {
            if ($id !== $except) {
                $this->refuse($id, 'its exchange was released');
            }
        }
    }

    /**
     * Does something as the owner; null when that failed. An owner that was released is replaced by the next call, but
     * what it asked is lost.
     *
     * @template T
     *
     * @param \Closure(Owner): T $do
     *
     * @return T|null
     */
    private function asOwner(string $otherwise, \Closure $do): mixed
    {
        try {
            $owner = $this->owner();

            return $owner === null ? null : $do($owner);
        } catch (OwnerExpired $e) {
            $this->ownerHasExpired();
            $this->failed($otherwise, $e);
        } catch (ExceptionInterface $e) {
            $this->failed($otherwise, $e);
        }

        return null;
    }

    /** @return array<string, array<string, mixed>> by number */
    private function broadcasts(): array
    {
        $rows = [];
        $peek = static fn (Owner $owner): array => $owner->peekOutgoing();

        foreach ($this->asOwner('broadcasts could not be read', $peek) ?? [] as $message) {
            $context = \json_decode($message->context, true);
            $rows["b$message->sequence"] = ['message' => $message->body, 'context' => \is_array($context) ? $context : []];
        }

        return $rows;
    }

    /**
     * @param int|null $waitMs until the next deadline; null when there is nothing to wait for
     *
     * @return array<int, array{request_id: int, timeout: int, timestamp: int}>
     */
    private function look(?int &$waitMs): array
    {
        $waitMs = null;
        $isReady = false;
        $entries = [];
        $infos = $this->session === null ? null : $this->asOwner(
            'pending requests could not be read',
            static fn (Owner $owner): array => $owner->pending(),
        );

        foreach ($infos ?? [] as $info) {
            if (!isset($this->asked[$info->id])) {
                continue;
            }

            if ($info->status === PendingStatus::Cancelled) {
                $this->refuse($info->id, 'it was cancelled');
            }

            $entries += self::entries([$info->id], $info->status === PendingStatus::TimedOut);
            $isReady = $isReady || $info->status !== PendingStatus::Waiting;
            $waitMs = \min($waitMs ?? \PHP_INT_MAX, $info->remainingMs);
        }

        foreach (\array_diff_key($this->asked, $entries) as $id => $deadline) {
            if ($this->session === null) {
                $this->refuse($id, 'the session has ended');
            } elseif ($infos !== null && !isset($this->refused[$id])) {
                $this->refuse($id, 'the store does not know it any longer');
            }

            // While the store cannot be asked, a question neither goes nor lasts for ever.
            $entries += self::entries([$id], !isset($this->refused[$id]) && \hrtime(true) > $deadline);
            $isReady = true;
        }

        if ($isReady) {
            $waitMs = null;
        }

        return $entries;
    }

    /**
     * @param list<int> $ids
     *
     * @return array<int, array{request_id: int, timeout: int, timestamp: int}>
     */
    private static function entries(array $ids, bool $isTimedOut = false): array
    {
        $entries = [];

        foreach ($ids as $id) {
            $entries[$id] = [
                'request_id' => $id,
                'timeout' => $isTimedOut ? 0 : \PHP_INT_MAX,
                'timestamp' => \time(),
            ];
        }

        return $entries;
    }

    private function refuse(int $id, string $why): void
    {
        $this->refused[$id] ??= self::error($id, "The question to the client ended: $why");
    }

    /** What the client may know of a failure. */
    private static function reason(ExceptionInterface $e): string
    {
        return match (true) {
            $e instanceof SessionNotFound => 'the session has ended',
            $e instanceof LimitExceeded => $e->getMessage(),
            default => 'the session store is not available',
        };
    }

    /** @return array<string, mixed> */
    private static function error(int $id, string $message): array
    {
        return ['jsonrpc' => '2.0', 'id' => $id, 'error' => ['code' => -32603, 'message' => $message]];
    }

    /** @return array<array-key, mixed>|null */
    private function decoded(?string $payload): ?array
    {
        $response = $payload === null ? null : \json_decode($payload, true);

        return \is_array($response) ? $response : null;
    }
}
