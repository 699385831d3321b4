<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

use McpState\Exception\ExceptionInterface;
use McpState\Owner;

/**
 * The messages that one exchange delivers to the client of one session.
 *
 * Its own messages stay here, in the process that delivers them; nobody else could. Broadcasts come from the store.
 *
 * @internal
 */
final class Outbox
{
    /** @var array<int|string, array<string, mixed>> messages as the SDK queued them, by a number that is never used twice */
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
     * The messages that the reader may deliver.
     *
     * @return array<int|string, array<string, mixed>> by number
     */
    public function rows(bool $withBroadcasts): array
    {
        return $this->rows + ($withBroadcasts ? $this->broadcasts() : []);
    }

    /**
     * @param array<string, mixed> $row
     *
     * @return int its number
     */
    public function append(array $row): int
    {
        $this->rows[++$this->last] = $row;

        return $this->last;
    }

    /** @param list<int|string> $numbers */
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
            $this->owned->asOwner('broadcasts could not be acknowledged', static fn (Owner $owner) => $owner->acknowledge($upTo));
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
        $this->owned->session()?->enqueueBroadcast($message, (string) Value::encode($context));
    }

    /** Drops what was not delivered. */
    public function end(): void
    {
        if ($this->rows !== []) {
            $this->owned->logger()->notice('mcp-state: ' . \count($this->rows)
                . ' messages were queued after their exchange had written its last; they are dropped');
            $this->rows = [];
        }
    }

    /** @return array<string, array<string, mixed>> by number */
    private function broadcasts(): array
    {
        $rows = [];
        $peek = static fn (Owner $owner): array => $owner->peekOutgoing();

        foreach ($this->owned->asOwner('broadcasts could not be read', $peek) ?? [] as $message) {
            $context = \json_decode($message->context, true);
            $rows["b$message->sequence"] = ['message' => $message->body, 'context' => \is_array($context) ? $context : []];
        }

        return $rows;
    }
}
