<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

use McpState\Exception\ExceptionInterface;
use McpState\Exception\SessionNotFound;
use McpState\Session;
use Psr\Log\LoggerInterface;

/**
 * The part of one exchange in one session: its outgoing messages, its questions to the client, its owner in the store.
 *
 * The exchange counts as a stream from the first turn of the SDK's loop; a JSON reply never takes a broadcast. No
 * method throws unless its documentation says so, because an exception in the SDK's loop would end the stream.
 *
 * @internal
 */
final class Share
{
    public readonly Outbox $outbox;

    public readonly Questions $questions;

    private readonly OwnedSession $owned;

    /** Whether the loop's next read of the pending requests is the first after a read of the queue. */
    private bool $isTurnStart = false;

    /** Whether the SDK's loop runs, which makes this a stream and not a JSON reply. */
    private bool $isStream;

    /** Whether the fiber has received a response or timeout since the last turn of the loop began. */
    private bool $isFiberResumed = false;

    /** The client's request whose handler called last. */
    private ?Call $call = null;

    public function __construct(
        public readonly string $id,
        ?Session $session,
        private readonly Settings $settings,
    ) {
        $this->owned = new OwnedSession($id, $session, $settings);
        $this->outbox = new Outbox($this->owned);
        $this->questions = new Questions($this->owned, $settings);
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

    /** Returns the session in the store; null if it has ended. */
    public function session(): ?Session
    {
        return $this->owned->session();
    }

    public function isCollection(string $key): bool
    {
        return \in_array($key, $this->settings->collections, true);
    }

    /**
     * Returns the messages that the reader may deliver.
     *
     * @return array<int|string, array<string, mixed>> by number
     */
    public function queue(bool $isLoop): array
    {
        if ($isLoop) {
            $this->isTurnStart = true;
            $this->isFiberResumed = $this->call?->hasReturned() ?? false;
            $this->answerAbandoned();
        }

        return $this->outbox->rows($isLoop && $this->isStream);
    }

    /**
     * Returns this exchange's pending requests by id, in the SDK's format.
     *
     * The loop's first call after a read of the queue sleeps until a request is resolved or a broadcast is queued.
     *
     * @return array<int, array{request_id: int, timeout: int, timestamp: int}>
     */
    public function pending(): array
    {
        $mayBlock = $this->isTurnStart && $this->settings->mayBlock;
        $this->isTurnStart = false;
        $this->isStream = true;
        $this->answerAbandoned();
        $entries = $this->questions->entries($mayBlock, $isWaiting);
        $this->isFiberResumed = $this->isFiberResumed || !$isWaiting;

        return $entries;
    }

    /**
     * Returns the client's response to a question of this exchange, in the SDK's format; null if there is none.
     *
     * @return array<array-key, mixed>|null
     */
    public function response(int $id): ?array
    {
        $response = $this->questions->response($id);
        $this->isFiberResumed = $this->isFiberResumed || $response !== null;

        return $response;
    }

    /**
     * Commits a journal.
     *
     * @param bool $isServed whether the exchange serves this session
     *
     * @return bool whether the session still exists
     *
     * @throws ExceptionInterface
     */
    public function commit(Journal $journal, bool $isServed): bool
    {
        $session = $this->owned->session();

        if ($session === null) {
            return false;
        }

        try {
            if ($journal->isEmpty()) {
                if (!$session->touch()) {
                    $this->owned->lose();
                }

                return $this->owned->session() !== null;
            }

            if ($isServed) {
                $this->owned->use();
            }

            if ($journal->values() !== [] || $journal->removals() !== []) {
                $session->patch($journal->values(), $journal->removals());
            }

            foreach ($journal->elementChanges() as $key => $change) {
                $session->update((string) $key, $change->applyTo(...));
            }

            return true;
        } catch (SessionNotFound) {
            $this->owned->lose();

            return false;
        }
    }

    /** Registers a question of the fiber that was suspended last. */
    public function ask(int $id, int $timeoutS): void
    {
        $this->questions->ask($id, $timeoutS, $this->call?->isSuspended() ? $this->call : null);
    }

    /** Returns the client's request that the running $fiber serves, and remembers it. */
    public function trackCall(\Fiber $fiber): Call
    {
        if (!$this->call?->isOf($fiber)) {
            $this->call = $this->questions->findCall($fiber) ?? new Call($fiber);
        }

        return $this->call;
    }

    /** Tells whether a fiber that the loop resumed has ended, when no other reference to it is left. */
    public function hasFiberEnded(): bool
    {
        return $this->isStream && $this->isFiberResumed;
    }

    /** Tells whether the exchange has neither questions nor outgoing messages here. */
    public function isIdle(): bool
    {
        return $this->questions->isEmpty() && $this->outbox->isEmpty();
    }

    /** Answers the client's requests whose fiber the SDK dropped, which the SDK itself never answers. */
    private function answerAbandoned(): void
    {
        foreach ($this->questions->finishEnded() as $requestId) {
            $why = 'The server has given up this request: the SDK serves one request that waits for the client at a time.';
            $this->logger()->warning('mcp-state: the SDK has given up a request that waited for the client');
            $this->outbox->append([
                'message' => (string) Value::encode(Question::error($requestId, $why)),
                'context' => ['type' => 'response'],
            ]);
        }
    }

    /** Ends the owner, and drops its undelivered messages. */
    public function end(): void
    {
        $this->outbox->end();
        $this->questions->end();
        $this->owned->end();
    }

    public function failed(string $what, ExceptionInterface $e): void
    {
        $this->owned->failed($what, $e);
    }
}
