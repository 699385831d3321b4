<?php

declare(strict_types=1);

namespace McpState\Example\State;

use McpState\PendingStatus;

/**
 * The same document with a lock per session, in the way of mcp/sdk 0.9, and with the other repairs of that version: a
 * stream waits only for its own question, results do not pass through the queue, and unexpected answers are dropped.
 *
 * The exchange holds the lock from before it reads the session until it ends, except for the sleep between two polls.
 * Answers are therefore correct, and the server serves the requests of one session one after another.
 */
final class LockedBlobSession extends BlobState
{
    /** @var list<string> */
    private array $results = [];

    /** @param resource $lock */
    public function __construct(string $id, string $file, private $lock)
    {
        parent::__construct($id, $file);
    }

    public function reply(string $message): void
    {
        $this->results[] = $message;
    }

    public function take(): array
    {
        $this->saveOwn();
        $blob = $this->fresh();
        $queue = $blob->get(self::QUEUE, []);
        if ($queue !== []) {
            $blob->set(self::QUEUE, []);
            $blob->save();
        }
        $results = $this->results;
        $this->results = [];

        return [...array_column($queue, 'message'), ...$results];
    }

    public function claim(?int $id): Answer
    {
        $entry = $id === null ? null : $this->fresh()->get(self::PENDING, [])[$id] ?? null;
        if ($entry === null) {
            return new Answer(PendingStatus::Unknown);
        }
        $response = $this->takeResponse($id);
        if ($response !== null) {
            return new Answer(PendingStatus::Answered, $response);
        }
        if (!self::timedOut($entry)) {
            return new Answer(PendingStatus::Waiting);
        }
        $this->dropPending($this->fresh(), $id);

        return new Answer(PendingStatus::TimedOut);
    }

    public function wait(int $atMostMs): void
    {
        flock($this->lock, LOCK_UN);
        usleep(100_000);
        flock($this->lock, LOCK_EX);
    }

    public function end(): void
    {
        $this->saveOwn();
        flock($this->lock, LOCK_UN);
    }

    protected function refusal(Blob $own, mixed $id): ?string
    {
        $entry = is_int($id) ? $own->get(self::PENDING, [])[$id] ?? null : null;

        return match (true) {
            $entry === null => 'Unknown',
            self::timedOut($entry) => 'TimedOut',
            default => null,
        };
    }
}
