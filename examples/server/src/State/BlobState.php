<?php

declare(strict_types=1);

namespace McpState\Example\State;

/**
 * The common part of both blob sessions. The exchange has one copy of the document, which it saves at its first
 * suspension or at its end, and reads a fresh copy for each later step. In-flight requests are not tracked, as in the
 * SDK.
 */
abstract class BlobState implements SessionState
{
    protected const COUNTER = '_mcp.request_id_counter';
    protected const QUEUE = '_mcp.outgoing_queue';
    protected const PENDING = '_mcp.pending_requests';
    protected const RESPONSES = '_mcp.responses';
    private const META = '_mcp.active_request_meta';

    private readonly Blob $own;
    private bool $saved = false;

    public function __construct(private readonly string $id, private readonly string $file)
    {
        $this->own = $this->fresh();
    }

    final public function id(): string
    {
        return $this->id;
    }

    final public function get(string $key): mixed
    {
        return $this->current()->get($key);
    }

    final public function all(): array
    {
        return array_diff_key($this->current()->data(), ['_mcp' => null]);
    }

    final public function set(array $values): void
    {
        foreach ($values as $key => $value) {
            $this->own->set($key, $value);
        }
    }

    final public function update(string $key, \Closure $change): void
    {
        $this->own->set($key, $change($this->own->get($key)));
        $this->own->save();
    }

    final public function begin(int|string $id, bool $reject): bool
    {
        $this->own->set(self::META, null);

        return true;
    }

    final public function finish(int|string $id): bool
    {
        return false;
    }

    final public function cancel(int|string $id): void
    {
    }

    final public function notify(string $message): void
    {
        $blob = $this->current();
        $this->enqueue($blob, $message);
        $this->save($blob);
    }

    final public function broadcast(string $message): void
    {
        $this->enqueue($this->own, $message);
    }

    final public function ask(array $message, int $timeoutMs): int
    {
        $blob = $this->current();
        $id = $blob->get(self::COUNTER, 1000);
        $blob->set(self::COUNTER, $id + 1);
        $entry = ['request_id' => $id, 'timeout' => $timeoutMs / 1000, 'timestamp' => time()];
        $blob->set(self::PENDING, $blob->get(self::PENDING, []) + [$id => $entry]);
        $this->enqueue($blob, json_encode($message + ['id' => $id], JSON_THROW_ON_ERROR));
        $this->save($blob);

        return $id;
    }

    final public function deliver(mixed $id, string $response): ?string
    {
        $refusal = $this->refusal($this->own, $id);
        if ($refusal === null) {
            $this->own->set(self::RESPONSES . '.' . $id, json_decode($response, true, flags: JSON_THROW_ON_ERROR));
        }

        return $refusal;
    }

    /** Returns why the answer to the question $id is not stored; null if it is stored. */
    abstract protected function refusal(Blob $own, mixed $id): ?string;

    final protected function fresh(): Blob
    {
        return new Blob($this->file);
    }

    /** Saves the exchange's own copy once: before the first suspension, or at the end. */
    final protected function saveOwn(): void
    {
        if (!$this->saved) {
            $this->save($this->own);
        }
    }

    final protected function enqueue(Blob $blob, string $message): void
    {
        $queue = $blob->get(self::QUEUE, []);
        $queue[] = ['message' => $message];
        $blob->set(self::QUEUE, $queue);
    }

    /** Returns the copy for the next change. */
    final protected function current(): Blob
    {
        return $this->saved ? $this->fresh() : $this->own;
    }

    /**
     * Removes the client's answer to the question $id and its pending entry, and returns the answer; null if there is
     * none.
     */
    final protected function takeResponse(int $id): ?array
    {
        $blob = $this->fresh();
        $response = $blob->get(self::RESPONSES . '.' . $id);
        if ($response === null) {
            return null;
        }
        $blob->set(self::RESPONSES . '.' . $id, null);
        $this->dropPending($blob, $id);

        return $response;
    }

    final protected function dropPending(Blob $blob, int $id): void
    {
        $pending = $blob->get(self::PENDING, []);
        unset($pending[$id]);
        $blob->set(self::PENDING, $pending);
        $blob->save();
    }

    /** @param array{timeout: int|float, timestamp: int} $entry the entry of a pending question */
    final protected static function timedOut(array $entry): bool
    {
        return time() - $entry['timestamp'] >= $entry['timeout'];
    }

    private function save(Blob $blob): void
    {
        $blob->save();
        $this->saved = true;
    }
}
