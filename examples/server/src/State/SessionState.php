<?php

declare(strict_types=1);

namespace McpState\Example\State;

/**
 * One session in the view of one HTTP request (an *exchange*).
 *
 * All state that must outlive or leave the exchange passes through this interface. HttpServer, Call and Tools are the
 * same for all implementations. {@see McpStateSession} makes each of these methods one atomic operation with an owner.
 * {@see BlobSession} keeps the session as one JSON document that it reads, changes and writes back, like PHP SDKs.
 */
interface SessionState
{
    public function id(): string;

    /** Returns the attribute under a dotted key; null if there is none. */
    public function get(string $key): mixed;

    /** @return array<string, mixed> all attributes */
    public function all(): array;

    /** @param array<string, mixed> $values the values by dotted key */
    public function set(array $values): void;

    /** @param \Closure(mixed): mixed $change a function without side effects, because it may run again */
    public function update(string $key, \Closure $change): void;

    /**
     * Registers the client's request $id as in flight. Returns false if $reject is true and a request with this id is
     * in flight.
     */
    public function begin(int|string $id, bool $reject): bool;

    /** Ends the in-flight request $id; true if the client cancelled it meanwhile. */
    public function finish(int|string $id): bool;

    /** Cancels the client's request $id. */
    public function cancel(int|string $id): void;

    /** Queues the result of a request for a plain reply. */
    public function reply(string $message): void;

    /** Queues a notification for this exchange's stream. */
    public function notify(string $message): void;

    /** Queues a broadcast, which any open stream of the session may deliver. */
    public function broadcast(string $message): void;

    /** @return list<string> the messages that this exchange must write now, removed from the queue */
    public function take(): array;

    /**
     * Queues a request to the client on this exchange's stream.
     *
     * @param array<string, mixed> $message a JSON-RPC request without its id
     * @return int its id
     */
    public function ask(array $message, int $timeoutMs): int;

    /**
     * Claims the question $id. Every status except Waiting ends it.
     *
     * @param ?int $id null: the tool waits for no answer, and only lets the stream write its messages
     */
    public function claim(?int $id): Answer;

    /** Waits until an event may concern this exchange, at most $atMostMs or about a second. */
    public function wait(int $atMostMs): void;

    /**
     * Delivers the client's answer to the question $id, which another exchange asked.
     *
     * @param string $response the JSON-RPC response
     * @return ?string why the answer was discarded; null if it was delivered
     */
    public function deliver(mixed $id, string $response): ?string;

    /** Ends the exchange. */
    public function end(): void;
}
