<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

use McpState\Exception\ExceptionInterface;
use McpState\Owner;

/**
 * The outgoing messages that one exchange delivers to the client of one session.
 *
 * The exchange's own messages stay in this process, which is the only one that can deliver them. Broadcasts are in the
 * store.
 *
 * @internal
 */
final class Outbox
{
    /**
     * @var array<int|string, array<string, mixed>> the messages as the SDK queued them, by a number that is never
     *      reused
     */
    private array $rows = [];

    private int $last = 0;

    public function __construct(private readonly OwnedSession $owned)
    {
    }

    public function isEmpty(): bool
    {
        return $this->rows === [];
    }

    /**
     * Returns the messages that the reader may deliver.
     *
     * @return array<int|string, array<string, mixed>> by number
     */
    public function rows(bool $withBroadcasts): array
    {
        return $this->rows + ($withBroadcasts ? $this->broadcasts() : []);
    }

    /**
     * Queues a message.
     *
     * @param array<string, mixed> $row
     *
     * @return int its number
     */
    public function append(array $row): int
    {
        $this->rows[++$this->last] = $row;

        return $this->last;
    }

    /**
     * Removes the messages with these numbers, and acknowledges the broadcasts among them.
     *
     * @param list<int|string> $numbers
     */
    public function remove(array $numbers): void
    {
        $upTo = 0;

        foreach ($numbers as $number) {
            if (\is_int($number)) {
                unset($this->rows[$number]);
            } else {
                $upTo = \max($upTo, (int) \substr($number, 1));
            }
        }

        if ($upTo > 0) {
            $acknowledge = static fn (Owner $owner): int => $owner->acknowledge($upTo);
            $this->owned->asOwner('cannot acknowledge broadcasts', $acknowledge);
        }
    }

    /**
     * Queues a broadcast for a session that the caller's exchange does not serve.
     *
     * @param array<string, mixed> $row
     *
     * @throws ExceptionInterface
     */
    public function broadcast(array $row): void
    {
        $message = \is_string($row['message'] ?? null) ? $row['message'] : '';
        $context = \is_array($row['context'] ?? null) ? $row['context'] : [];
        $this->owned->session()?->enqueueBroadcast($message, (string) Value::encode($context));
    }

    /** Drops the undelivered messages. */
    public function end(): void
    {
        if ($this->rows !== []) {
            $count = \count($this->rows);
            $this->owned->logger()->notice("mcp-state: dropped $count messages that were queued after the last reply");
            $this->rows = [];
        }
    }

    /** @return array<string, array<string, mixed>> by number */
    private function broadcasts(): array
    {
        $rows = [];
        $peek = static fn (Owner $owner): array => $owner->peekOutgoing();

        foreach ($this->owned->asOwner('cannot read broadcasts', $peek) ?? [] as $message) {
            $context = \json_decode($message->context, true);
            $rows["b$message->sequence"] = ['message' => $message->body, 'context' => \is_array($context) ? $context : []];
        }

        return $rows;
    }
}
