<?php

declare(strict_types=1);

namespace McpState\Example\State;

use McpState\PendingStatus;

/**
 * The session as one JSON document, in the way of mcp/sdk 0.5 to 0.7. The queue, pending questions and answers belong
 * to the session and not to the exchange. The first process to read the queue therefore takes the messages of others,
 * and a waiting stream continues with the first answer or timeout that it finds.
 */
final class BlobSession extends BlobState
{
    public function reply(string $message): void
    {
        $this->enqueue($this->current(), $message);
    }

    public function take(): array
    {
        $this->saveOwn();
        $blob = $this->fresh();
        $queue = $blob->get(self::QUEUE, []);
        $blob->set(self::QUEUE, []);
        $blob->save();

        return array_column($queue, 'message');
    }

    public function claim(?int $id): Answer
    {
        $pending = $this->fresh()->get(self::PENDING, []);
        if ($pending === []) {
            return new Answer(PendingStatus::Unknown);
        }
        foreach ($pending as $entry) {
            $response = $this->takeResponse($entry['request_id']);
            if ($response !== null) {
                return new Answer(PendingStatus::Answered, $response);
            }
            if (self::timedOut($entry)) {
                return new Answer(PendingStatus::TimedOut);
            }
        }

        return new Answer(PendingStatus::Waiting);
    }

    public function wait(int $atMostMs): void
    {
        usleep(100_000);
    }

    public function end(): void
    {
        $this->saveOwn();
    }

    protected function refusal(Blob $own, mixed $id): ?string
    {
        return null;
    }
}
