<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

use McpState\Exception\ExceptionInterface;
use McpState\Exception\SessionNotFound;
use McpState\Session;
use Psr\Log\LoggerInterface;

/**
 * What one exchange has of one session: its outgoing messages, its requests to the client, its owner in the store.
 *
 * From its first turn of the loop on the exchange counts as a stream; a JSON reply never sees a broadcast. Nothing here
 * throws, unless its documentation says so: an exception in the SDK's loop would end the stream.
 *
 * @internal
 */
final class Share
{
    public readonly Outbox $outbox;

    public readonly Questions $questions;

    private readonly OwnedSession $owned;

    /** Whether the next pending read of the loop is the first after a queue read. */
    private bool $isTurnStart = false;

    /** Whether the SDK's loop runs: a stream, not a JSON reply. */
    private bool $isStream;

    /** Whether the fiber has been given something to go on with since the last turn of the loop began. */
    private bool $isFiberResumed = false;

    /** The client's request whose handler was seen last. */
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

    /** The session in the store; null when it is gone. */
    public function session(): ?Session
    {
        return $this->owned->session();
    }

    public function isCollection(string $key): bool
    {
        return \in_array($key, $this->settings->collections, true);
    }

    /**
     * The messages that the reader may deliver.
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
     * This exchange's requests as the SDK keeps them, by id.
     *
     * The loop's first look after it has read the queue sleeps until one of them is resolved or a broadcast has come.
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
     * The client's answer to a request of this exchange, as the SDK keeps it.
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
     * @param bool $isServed whether this is the session that the exchange serves
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

    /** Registers what the fiber that was suspended last asks the client. */
    public function ask(int $id, int $timeoutS): void
    {
        $this->questions->ask($id, $timeoutS, $this->call?->isSuspended() ? $this->call : null);
    }

    /** Notes that $fiber, which runs now, serves a request of the client. */
    public function noteFiber(\Fiber $fiber): Call
    {
        if (!$this->call?->isOf($fiber)) {
            $this->call = $this->questions->callOf($fiber) ?? new Call($fiber);
        }

        return $this->call;
    }

    /** Whether a fiber that was resumed by the loop has come to its end, when nothing holds on to it any longer. */
    public function hasFiberEnded(): bool
    {
        return $this->isStream && $this->isFiberResumed;
    }

    /** Whether the exchange waits for nothing here. */
    public function isIdle(): bool
    {
        return $this->questions->isEmpty() && $this->outbox->isEmpty();
    }

    /** Answers the client's requests whose fiber the SDK let go of: nobody else will. */
    private function answerAbandoned(): void
    {
        foreach ($this->questions->finishEnded() as $requestId) {
            $why = 'The server has given up this request: the SDK serves one request that waits for the client at a time.';
            $this->logger()->warning("mcp-state: the SDK has given up a request that waited for the client, which is told so");
            $this->outbox->append([
                'message' => (string) Value::encode(Question::error($requestId, $why)),
                'context' => ['type' => 'response'],
            ]);
        }
    }

    /** Ends the owner. What it did not deliver goes with it. */
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
