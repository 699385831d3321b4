<?php

declare(strict_types=1);

namespace McpState\Example\State;

/**
 * One session, as one HTTP request (an *exchange*) works with it.
 *
 * Everything that must outlive or leave the exchange goes through here; HttpServer, Call and Tools are the same whatever
 * stands behind it. {@see McpStateSession} makes each of these methods one atomic operation with an owner.
 * {@see BlobSession} keeps the session as one JSON document that is read, changed and written back, as PHP SDKs do.
 */
interface SessionState
{
    public function id(): string;

    /** An attribute of the session, under a dotted key; null when it has none. */
    public function get(string $key): mixed;

    /** @return array<string, mixed> every attribute */
    public function all(): array;

    /** @param array<string, mixed> $values by dotted key */
    public function set(array $values): void;

    /** @param \Closure(mixed): mixed $change pure: it may run again */
    public function update(string $key, \Closure $change): void;

    /** The exchange serves the client's request $id from now on. False: one with that id is in flight, and $reject says no. */
    public function begin(int|string $id, bool $reject): bool;

    /** The exchange is done with the client's request $id; true when the client cancelled it meanwhile. */
    public function finish(int|string $id): bool;

    /** The client cancels its request $id. */
    public function cancel(int|string $id): void;

    /** Queues the result of a request for a plain reply. */
    public function reply(string $message): void;

    /** Queues a notification for this exchange's stream. */
    public function notify(string $message): void;

    /** Queues a notification for whichever stream of the session is open. */
    public function broadcast(string $message): void;

    /** @return list<string> what this exchange has to write now, taken out of the queue */
    public function take(): array;

    /**
     * Queues a request to the client on this exchange's stream.
     *
     * @param array<string, mixed> $message a JSON-RPC request without its id
     * @return int the id it got
     */
    public function ask(array $message, int $timeoutMs): int;

    /**
     * What has become of the question $id. Anything but Waiting ends it.
     *
     * @param ?int $id null: the tool waits for no answer, it only lets its messages be written
     */
    public function claim(?int $id): Answer;

    /** Waits until something may have changed for this exchange, for at most $atMostMs or about a second. */
    public function wait(int $atMostMs): void;

    /**
     * The client's answer to the question $id, from another exchange.
     *
     * @param string $response the JSON-RPC response
     * @return ?string why it was discarded; null when it was delivered
     */
    public function deliver(mixed $id, string $response): ?string;

    /** The exchange is over. */
    public function end(): void;
}
