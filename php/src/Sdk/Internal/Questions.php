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
 * The questions of one exchange to the client of one session. A question is a request of the server to the client.
 *
 * The store holds them as pending requests and receives the responses. Only the store decides how a question ends (G2);
 * the entries for the SDK are such that its own clock never decides. If the store refuses a question, or the session
 * has ended, this class answers the question with an error, and the tool that asked receives it.
 *
 * A question belongs to the fiber that asked, and ends with that fiber. The SDK up to 0.8 would otherwise deliver the
 * response or the timeout to whichever fiber the transport serves next.
 *
 * @internal
 */
final class Questions
{
    /** The first request id to use when the store is unavailable. It is far from the ids of the store. */
    private const LOCAL_IDS = 1 << 52;

    /** The JSON-RPC error code for a question whose request was cancelled by the client. */
    private const REQUEST_CANCELLED = -32800;

    /** The longest method, in bytes, that the store keeps with a pending request. */
    private const MAX_METHOD = 128;

    /** The longest timeout, in seconds, that the store accepts: ten years. */
    private const MAX_TIMEOUT_S = 315_360_000;

    /** @var array<int, Question> by id */
    private array $asked = [];

    /**
     * @var array<int, string> the ids from {@see LOCAL_IDS}, and why the store gave none: their questions are refused
     */
    private array $localIds = [];

    /** @var list<Call> the client's requests that this exchange's owner has in flight */
    private array $inFlight = [];

    /** The request that the exchange serves, for display: `tools/call greet`; empty if unknown. */
    public string $description = '';

    private readonly WaitingRoom $room;

    public function __construct(private readonly OwnedSession $owned, private readonly Settings $settings)
    {
        $this->room = ($settings->waitingRoom)();
    }

    public function isEmpty(): bool
    {
        return $this->asked === [];
    }

    /** Returns an id that no other request to the client has (G5). */
    public function nextId(): int
    {
        try {
            $session = $this->owned->session();

            if ($session !== null) {
                return $session->nextRequestId();
            }

            $why = 'the session has ended';
        } catch (ExceptionInterface $e) {
            $this->owned->failed('cannot generate a request id', $e);
            $why = self::reason($e);
        }

        $id = self::LOCAL_IDS + \random_int(0, self::LOCAL_IDS - 1);
        $this->localIds[$id] = $why;

        return $id;
    }

    /**
     * Registers a question of $call with a timeout of $timeoutS seconds. A timeout that equals the SDK's default is no
     * choice of the tool, so the store's `request_timeout_ms` replaces it.
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
                $this->owned->logger()->warning('mcp-state: refused a question to the client: no free waiting place');
                $question->refuse("$places exchanges already wait for their clients");

                return;
            }

            try {
                $this->register($question);
            } catch (OwnerExpired) {
                $this->owned->release();
                $this->register($question);
            }
        } catch (ExceptionInterface $e) {
            $this->owned->failed('refused a question to the client', $e);
            $question->refuse(self::reason($e));
        }
    }

    /** Finishes a question whose response or timeout the SDK has received, or which it dropped. */
    public function finish(int $id): void
    {
        $question = $this->asked[$id] ?? null;

        if ($question === null) {
            return; // The question belongs to another exchange.
        }

        unset($this->asked[$id]);

        if ($this->asked === []) {
            $this->room->leave();
        }

        if ($question->error === null) {
            $this->owned->asOwner("cannot claim request $id", static function (Owner $owner) use ($id): void {
                $request = $owner->pendingRequest($id);

                if ($request->claim()->status === PendingStatus::Waiting) {
                    $request->cancel();
                    $request->claim();
                }
            });
        }
    }

    /** Returns the client's request that $fiber serves, if it has asked a question. */
    public function findCall(\Fiber $fiber): ?Call
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
     * Finishes the questions of fibers that have ended.
     *
     * @return list<int|string> ids of the client's requests whose fiber the SDK dropped while it waited
     */
    public function finishEnded(): array
    {
        $abandoned = [];

        foreach ($this->asked as $id => $question) {
            if ($question->call?->hasEnded()) {
                $this->finish($id);

                if (!$question->isReported && $question->call->requestId !== null) {
                    $abandoned[] = $question->call->requestId;
                }
            }
        }

        foreach ($this->inFlight as $at => $call) {
            if ($call->hasEnded()) {
                unset($this->inFlight[$at]);
                $this->owned->asOwner(
                    'cannot finish an in-flight request',
                    static fn (Owner $owner) => $owner->finishRequest($call->requestId ?? ''),
                );
            }
        }

        return $abandoned;
    }

    /**
     * Tells whether $row is a refused question, which the client must not receive. Otherwise records the question's
     * method in the store.
     *
     * @param array<string, mixed> $row a message in the format of the SDK's queue
     */
    public function refuses(array $row): bool
    {
        if ($this->asked === [] || !\is_string($row['message'] ?? null)) {
            return false;
        }

        $message = \json_decode($row['message'], true);
        $question = \is_array($message) && isset($message['method']) ? $this->asked[$message['id'] ?? ''] ?? null : null;

        if ($question !== null && \is_string($message['method'])) {
            $this->recordMethod($question, $message['method']);
        }

        return $question?->error !== null;
    }

    /**
     * Returns this exchange's pending requests by id, in the SDK's format. A timed-out entry remains until the SDK
     * drops it.
     *
     * @param bool      $mayBlock  whether to sleep until a request is resolved or a broadcast is queued
     * @param bool|null $isWaiting receives whether there are requests, none of which is resolved
     *
     * @return array<int, array{request_id: int, timeout: int, timestamp: int}>
     */
    public function entries(bool $mayBlock, ?bool &$isWaiting): array
    {
        $entries = $this->poll($waitMs);

        while ($mayBlock && $waitMs !== null) {
            $result = $this->owned->asOwner('cannot wait for the client', static fn (Owner $owner) => $owner->wait(
                \min(1000, $waitMs + 1),
                0,
                Interest::Resolution,
                Interest::Message,
                Interest::Cancellation,
            ));
            $entries = $this->poll($waitMs);
            $mayBlock = $result?->status === WaitStatus::Deadline || $result?->status === WaitStatus::Interrupted;

            if ($waitMs !== null && $this->settings->whileWaiting !== null) {
                ($this->settings->whileWaiting)();
            }
        }

        $isWaiting = $waitMs !== null;

        return $entries;
    }

    /**
     * Returns the pending requests of all owners of the session, all as waiting: only the store decides whether a
     * response is late (G4).
     *
     * @return array<int, array{request_id: int, timeout: int, timestamp: int}>
     */
    public function allEntries(): array
    {
        $own = \array_filter($this->asked, static fn (Question $question): bool => $question->error !== null);

        try {
            $infos = $this->owned->session()?->allPending() ?? [];
            $ids = [...\array_keys($own), ...\array_column($infos, 'id')];
        } catch (ExceptionInterface $e) {
            $this->owned->failed('cannot read the pending requests', $e);
            $ids = \array_keys($this->asked);
        }

        return \array_replace([], ...\array_map(self::entry(...), $ids));
    }

    /**
     * Returns the client's response to a question of this exchange, in the SDK's format; null if there is none.
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
            $question->isReported = true;

            return $question->error;
        }

        $payload = $this->owned->asOwner(
            "cannot read the response to request $id",
            static fn (Owner $owner) => $owner->pendingRequest($id)->peek(),
        );
        $response = $payload === null ? null : \json_decode($payload, true);
        $this->refuseAbandoned();

        $response = \is_array($response) ? $response : $question->error;
        $question->isReported = $question->isReported || $response !== null;

        return $response;
    }

    /**
     * Delivers a client's response to the exchange that waits for it.
     *
     * @throws ExceptionInterface if the store fails; the client may send the response again
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
            // The tool that asked must not wait for a response that the store refuses.
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

    /** Leaves the waiting room. The questions end with the owner. */
    public function end(): void
    {
        $this->room->leave();
    }

    /** @throws ExceptionInterface */
    private function register(Question $question): void
    {
        $question->owner = $this->owned->owner();
        $this->beginRequest($question->call, $question->owner);
        $question->owner?->registerPending($question->id, $question->timeoutMs);
    }

    /** Registers the client's request as in flight, so that the client can cancel it. */
    private function beginRequest(?Call $call, ?Owner $owner): void
    {
        if ($owner === null || $call?->requestId === null || \in_array($call, $this->inFlight, true)) {
            return;
        }

        try {
            $owner->beginRequest($call->requestId);
            $this->inFlight[] = $call;
        } catch (LimitExceeded | InvalidArgument $e) {
            $this->owned->failed('the client cannot cancel a request that waits for it', $e);

            return;
        }

        try {
            ($this->settings->onRequestBegun)($call->requestId);
        } catch (ExceptionInterface $e) {
            $this->owned->logger()->notice("mcp-state: a request is in flight twice: {$e->getMessage()}");
        }
    }

    /** Ends the question if the client has cancelled the request whose handler asked it. */
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

    /** Records the question's method in the store, for display. The method is known once the SDK queues the message. */
    private function recordMethod(Question $question, string $method): void
    {
        $what = self::printable($this->description === '' ? $method : "$method ($this->description)");

        if ($question->owner === null || $question->error !== null || $question->hasMethod || $what === '') {
            return;
        }

        $question->hasMethod = true;

        try {
            $question->owner->registerPending($question->id, $question->timeoutMs, $what);
        } catch (DuplicateRequestId) {
            // The question already has its response.
        } catch (ExceptionInterface $e) {
            $this->owned->failed('cannot record the method of a question to the client', $e);
        }
    }

    /** Returns a text from the client in the form that the store displays: printable ASCII of limited length. */
    private static function printable(string $text): string
    {
        return \substr((string) \preg_replace('/[^\x20-\x7e]/', '?', $text), 0, self::MAX_METHOD);
    }

    /** Refuses the questions of an owner that the store has released. */
    private function refuseAbandoned(): void
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
     * Reads the state of all questions.
     *
     * @param int|null $waitMs receives the milliseconds until the next deadline; null if there is nothing to wait for
     *
     * @return array<int, array{request_id: int, timeout: int, timestamp: int}>
     */
    private function poll(?int &$waitMs): array
    {
        $this->room->renew();
        $waitMs = null;
        $isReady = false;
        $entries = [];
        $infos = $this->owned->session() === null ? null : $this->owned->asOwner(
            'cannot read the pending requests',
            function (Owner $owner): array {
                \array_map(fn (Question $question) => $this->endCancelled($owner, $question), $this->asked);

                return $owner->pending();
            },
        );
        $this->refuseAbandoned();

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
            $this->asked[$info->id]->isReported = $this->asked[$info->id]->isReported || $isTimedOut;
            $entries += self::entry($info->id, $isTimedOut);
            $isReady = $isReady || $info->status !== PendingStatus::Waiting;
            $waitMs = \min($waitMs ?? \PHP_INT_MAX, $info->remainingMs);
        }

        foreach (\array_diff_key($this->asked, $entries) as $id => $question) {
            if ($this->owned->session() === null) {
                $question->refuse('the session has ended');
            } elseif ($infos !== null) {
                $question->refuse('the store no longer has it');
            }

            // While the store is unavailable, a question stays until its deadline.
            $isTimedOut = $question->error === null && \hrtime(true) > $question->deadline;
            $question->isReported = $question->isReported || $isTimedOut;
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

    /** Returns the part of a failure that the client may see. */
    private static function reason(ExceptionInterface $e): string
    {
        return match (true) {
            $e instanceof SessionNotFound => 'the session has ended',
            $e instanceof LimitExceeded => $e->getMessage(),
            default => 'the session store is not available',
        };
    }
}
