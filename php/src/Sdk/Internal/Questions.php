<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

use McpState\Exception\DuplicateRequestId;
use McpState\Exception\ExceptionInterface;
use McpState\Exception\InvalidArgument;
use McpState\Exception\LimitExceeded;
use McpState\Exception\OwnerExpired;
use McpState\Exception\SessionNotFound;
use McpState\Interest;
use McpState\Owner;
use McpState\PendingStatus;
use McpState\WaitStatus;

/**
 * The requests that one exchange makes to the client of one session.
 *
 * They are in the store, where the answers arrive. The store alone decides how they end; what the SDK is shown never lets
 * it decide by its own clock. A question that the store refuses, or whose session ended, is *answered here* with an
 * error, which the SDK hands to the tool that asked.
 *
 * A question belongs to the fiber that asked it, and to nobody when the fiber has ended: the SDK up to 0.8 would give its
 * answer, or its timeout, to whichever fiber the transport serves next.
 *
 * @internal
 */
final class Questions
{
    /** Where a request id comes from when the store gives none: far from those it gives. */
    private const LOCAL_IDS = 1 << 52;

    /** The JSON-RPC error code of a question that ended since the client cancelled the request it was asked for. */
    private const REQUEST_CANCELLED = -32800;

    /** The longest text, in bytes, that the store keeps with a question. */
    private const MAX_METHOD = 128;

    /** The longest timeout the store takes: ten years. */
    private const MAX_TIMEOUT_S = 315_360_000;

    /** @var array<int, Question> by id */
    private array $asked = [];

    /** @var array<int, string> ids that were given while the store gave none, and why: their questions are refused */
    private array $localIds = [];

    /** @var list<Call> client's requests that this exchange's owner has in flight */
    private array $inFlight = [];

    /** What the exchange serves, for whoever looks at the store: `tools/call greet`; '' where that is not known. */
    public string $for = '';

    private readonly WaitingRoom $room;

    public function __construct(private readonly OwnedSession $owned, private readonly Settings $settings)
    {
        $this->room = ($settings->waitingRoom)();
    }

    public function isEmpty(): bool
    {
        return $this->asked === [];
    }

    /** A number for the next request to the client, which no other has. */
    public function nextId(): int
    {
        try {
            $session = $this->owned->session();

            if ($session !== null) {
                return $session->nextRequestId();
            }

            $why = 'the session has ended';
        } catch (ExceptionInterface $e) {
            $this->owned->failed('no request id', $e);
            $why = self::reason($e);
        }

        $id = self::LOCAL_IDS + \random_int(0, self::LOCAL_IDS - 1);
        $this->localIds[$id] = $why;

        return $id;
    }

    /**
     * Registers what $call asks the client, for $timeoutS seconds. The SDK's own default is nobody's choice: such
     * a question waits for the store's `request_timeout_ms`.
     */
    public function ask(int $id, int $timeoutS, ?Call $call): void
    {
        foreach ($this->asked as $earlier) {
            if ($earlier->isOver($call)) {
                $this->finish($earlier->id);
            }
        }

        $timeoutMs = 1000 * \max(0, \min($timeoutS, self::MAX_TIMEOUT_S));
        $question = $this->asked[$id] = new Question(
            $id,
            \hrtime(true) + 1_000_000 * $timeoutMs,
            $timeoutS === Sdk::DEFAULT_TIMEOUT_S ? null : $timeoutMs,
            $call,
        );

        if (isset($this->localIds[$id])) {
            $question->refuse($this->localIds[$id]);
            unset($this->localIds[$id]);

            return;
        }

        try {
            if ($this->owned->owner() === null) {
                $question->refuse('the session has ended');

                return;
            }

            try {
                $this->room->enter();
            } catch (LimitExceeded $e) {
                $places = $this->room->places() ?? 'too many';
                $this->owned->logger()->warning('mcp-state: a question to the client is refused: no place to wait');
                $question->refuse("$places exchanges wait for their clients already");

                return;
            }

            try {
                $this->register($question);
            } catch (OwnerExpired) {
                $this->owned->release();
                $this->register($question);
            }
        } catch (ExceptionInterface $e) {
            $this->owned->failed('a question to the client is refused', $e);
            $question->refuse(self::reason($e));
        }
    }

    /** The SDK is done with a request: what it was shown counts as taken. */
    public function finish(int $id): void
    {
        $question = $this->asked[$id] ?? null;

        if ($question === null) {
            return; // Somebody else's.
        }

        unset($this->asked[$id]);

        if ($this->asked === []) {
            $this->room->leave();
        }

        if ($question->error === null) {
            $this->owned->asOwner("request $id could not be claimed", static function (Owner $owner) use ($id): void {
                $request = $owner->pendingRequest($id);

                if ($request->claim()->status === PendingStatus::Waiting) {
                    $request->cancel();
                    $request->claim();
                }
            });
        }
    }

    /** The client's request that $fiber serves, where it has asked something. */
    public function callOf(\Fiber $fiber): ?Call
    {
        foreach ($this->asked as $question) {
            if ($question->call?->isOf($fiber)) {
                return $question->call;
            }
        }

        foreach ($this->inFlight as $call) {
            if ($call->isOf($fiber)) {
                return $call;
            }
        }

        return null;
    }

    /**
     * Finishes what fibers asked that have ended.
     *
     * @return list<int|string> ids of the client's requests whose fiber the SDK let go of while it waited
     */
    public function finishEnded(): array
    {
        $abandoned = [];

        foreach ($this->asked as $id => $question) {
            if ($question->call?->hasEnded()) {
                $this->finish($id);

                if (!$question->isShown && $question->call->requestId !== null) {
                    $abandoned[] = $question->call->requestId;
                }
            }
        }

        foreach ($this->inFlight as $at => $call) {
            if ($call->hasEnded()) {
                unset($this->inFlight[$at]);
                $this->owned->asOwner(
                    'a request could not be finished',
                    static fn (Owner $owner) => $owner->finishRequest($call->requestId ?? ''),
                );
            }
        }

        return $abandoned;
    }

    /**
     * Whether $row is a request that was refused, which the client must not see. Of one that was not the
     * store hears its method.
     *
     * @param array<string, mixed> $row as the SDK queues it
     */
    public function refuses(array $row): bool
    {
        if ($this->asked === [] || !\is_string($row['message'] ?? null)) {
            return false;
        }

        $message = \json_decode($row['message'], true);
        $question = \is_array($message) && isset($message['method']) ? $this->asked[$message['id'] ?? ''] ?? null : null;

        if ($question !== null && \is_string($message['method'])) {
            $this->name($question, $message['method']);
        }

        return $question?->error !== null;
    }

    /**
     * This exchange's requests as the SDK keeps them, by id. An entry that has timed out says so until it is dropped.
     *
     * @param bool      $mayBlock  whether to sleep until one of them is resolved or a broadcast has come
     * @param bool|null $isWaiting set to whether there are some, and all of them wait still
     *
     * @return array<int, array{request_id: int, timeout: int, timestamp: int}>
     */
    public function entries(bool $mayBlock, ?bool &$isWaiting): array
    {
        $entries = $this->look($waitMs);

        while ($mayBlock && $waitMs !== null) {
            $result = $this->owned->asOwner('waiting failed', static fn (Owner $owner) => $owner->wait(
                \min(1000, $waitMs + 1),
                0,
                Interest::Resolution,
                Interest::Message,
                Interest::Cancellation,
            ));
            $entries = $this->look($waitMs);
            $mayBlock = $result?->status === WaitStatus::Deadline || $result?->status === WaitStatus::Interrupted;

            if ($waitMs !== null && $this->settings->whileWaiting !== null) {
                ($this->settings->whileWaiting)();
            }
        }

        $isWaiting = $waitMs !== null;

        return $entries;
    }

    /**
     * Everybody's requests of the session, all as if they waited: whether an answer comes too late is the store's to
     * say, and to count.
     *
     * @return array<int, array{request_id: int, timeout: int, timestamp: int}>
     */
    public function entriesOfAll(): array
    {
        $own = \array_filter($this->asked, static fn (Question $question): bool => $question->error !== null);

        try {
            $infos = $this->owned->session()?->allPending() ?? [];
            $ids = [...\array_keys($own), ...\array_column($infos, 'id')];
        } catch (ExceptionInterface $e) {
            $this->owned->failed('pending requests could not be read', $e);
            $ids = \array_keys($this->asked);
        }

        return \array_replace([], ...\array_map(self::entry(...), $ids));
    }

    /**
     * The client's answer to a request of this exchange, as the SDK keeps it.
     *
     * @return array<array-key, mixed>|null
     */
    public function response(int $id): ?array
    {
        $question = $this->asked[$id] ?? null;

        if ($question === null) {
            return null;
        }

        if ($question->error !== null) {
            $question->isShown = true;

            return $question->error;
        }

        $payload = $this->owned->asOwner(
            "the answer to request $id could not be read",
            static fn (Owner $owner) => $owner->pendingRequest($id)->peek(),
        );
        $response = $payload === null ? null : \json_decode($payload, true);
        $this->refuseLost();

        $response = \is_array($response) ? $response : $question->error;
        $question->isShown = $question->isShown || $response !== null;

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
        $discarded = "mcp-state: the answer to request $shown is discarded";

        if ($id === null || $sent !== $id) {
            $this->owned->logger()->warning("$discarded: Unknown");

            return;
        }

        $session = $this->owned->session();

        try {
            $delivery = $session?->deliverResponse($id, (string) Value::encode($response));
        } catch (SessionNotFound) {
            $this->owned->lose();
            $delivery = null;
        } catch (LimitExceeded $e) {
            // Whoever asked must not wait in vain for what cannot be stored.
            $delivery = $session?->deliverResponse(
                $id,
                (string) Value::encode(Question::error($id, 'The client\'s answer was refused: ' . $e->getMessage())),
            );
        }

        if ($delivery === null) {
            $this->owned->logger()->warning("$discarded: the session has ended");
        } elseif ($delivery->reason !== null) {
            $this->owned->logger()->warning("$discarded: {$delivery->reason->name}");
        }
    }

    /** The exchange is over: it waits for nothing any longer. What it asked ends with its owner. */
    public function end(): void
    {
        $this->room->leave();
    }

    /** @throws ExceptionInterface */
    private function register(Question $question): void
    {
        $question->owner = $this->owned->owner();
        $this->begin($question->call, $question->owner);
        $question->owner?->registerPending($question->id, $question->timeoutMs);
    }

    /** Says that the client's request is in flight, so that the client can cancel it. */
    private function begin(?Call $call, ?Owner $owner): void
    {
        if ($owner === null || $call?->requestId === null || \in_array($call, $this->inFlight, true)) {
            return;
        }

        try {
            $owner->beginRequest($call->requestId);
            $this->inFlight[] = $call;
        } catch (LimitExceeded | InvalidArgument $e) {
            $this->owned->failed('a request that waits for the client cannot be cancelled', $e);

            return;
        }

        try {
            ($this->settings->takeOver)($call->requestId);
        } catch (ExceptionInterface $e) {
            $this->owned->logger()->notice("mcp-state: a request is in flight twice: {$e->getMessage()}");
        }
    }

    /** Ends what was asked in the course of a request that the client has cancelled. */
    private function endCancelled(Owner $owner, Question $question): void
    {
        $requestId = $question->call?->requestId;

        if ($requestId !== null && \in_array($question->call, $this->inFlight, true) && $owner->isCancelled($requestId)) {
            $request = $owner->pendingRequest($question->id);
            $request->cancel();
            $request->claim();
            $question->refuse('the client has cancelled the request', self::REQUEST_CANCELLED);
        }
    }

    /** Tells whoever looks at the store what a question is, which is known when its message is queued. */
    private function name(Question $question, string $method): void
    {
        $what = self::shown($this->for === '' ? $method : "$method ($this->for)");

        if ($question->owner === null || $question->error !== null || $question->isNamed || $what === '') {
            return;
        }

        $question->isNamed = true;

        try {
            $question->owner->registerPending($question->id, $question->timeoutMs, $what);
        } catch (DuplicateRequestId) {
            // It is answered already.
        } catch (ExceptionInterface $e) {
            $this->owned->failed('a question to the client stays without a name', $e);
        }
    }

    /** A text of the client's as the store may show it: of printable ASCII, and no longer than it takes. */
    private static function shown(string $text): string
    {
        return \substr((string) \preg_replace('/[^\x20-\x7e]/', '?', $text), 0, self::MAX_METHOD);
    }

    /** Refuses what an owner asked that the store has released. */
    private function refuseLost(): void
    {
        foreach ($this->asked as $question) {
            if ($question->owner !== null && !$this->owned->isOwner($question->owner)) {
                $question->refuse(
                    $this->owned->session() === null ? 'the session has ended' : 'its exchange was released',
                );
            }
        }
    }

    /**
     * @param int|null $waitMs until the next deadline; null when there is nothing to wait for
     *
     * @return array<int, array{request_id: int, timeout: int, timestamp: int}>
     */
    private function look(?int &$waitMs): array
    {
        $this->room->renew();
        $waitMs = null;
        $isReady = false;
        $entries = [];
        $infos = $this->owned->session() === null ? null : $this->owned->asOwner(
            'pending requests could not be read',
            function (Owner $owner): array {
                \array_map(fn (Question $question) => $this->endCancelled($owner, $question), $this->asked);

                return $owner->pending();
            },
        );
        $this->refuseLost();

        foreach ($infos ?? [] as $info) {
            if (!isset($this->asked[$info->id])) {
                continue;
            }

            if ($info->status === PendingStatus::Waiting) {
                $this->asked[$info->id]->deadline = \hrtime(true) + 1_000_000 * $info->remainingMs;
            }

            if ($info->status === PendingStatus::Cancelled) {
                $this->asked[$info->id]->refuse('it was cancelled');
            }

            $isTimedOut = $info->status === PendingStatus::TimedOut;
            $this->asked[$info->id]->isShown = $this->asked[$info->id]->isShown || $isTimedOut;
            $entries += self::entry($info->id, $isTimedOut);
            $isReady = $isReady || $info->status !== PendingStatus::Waiting;
            $waitMs = \min($waitMs ?? \PHP_INT_MAX, $info->remainingMs);
        }

        foreach (\array_diff_key($this->asked, $entries) as $id => $question) {
            if ($this->owned->session() === null) {
                $question->refuse('the session has ended');
            } elseif ($infos !== null) {
                $question->refuse('the store does not know it any longer');
            }

            // While the store cannot be asked, a question neither goes nor lasts for ever.
            $isTimedOut = $question->error === null && \hrtime(true) > $question->deadline;
            $question->isShown = $question->isShown || $isTimedOut;
            $entries += self::entry($id, $isTimedOut);
            $isReady = true;
        }

        if ($isReady) {
            $waitMs = null;
        }

        return $entries;
    }

    /** @return array<int, array{request_id: int, timeout: int, timestamp: int}> */
    private static function entry(int $id, bool $isTimedOut = false): array
    {
        return [$id => [
            'request_id' => $id,
            'timeout' => $isTimedOut ? 0 : \PHP_INT_MAX,
            'timestamp' => \time(),
        ]];
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
}
