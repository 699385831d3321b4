<?php

declare(strict_types=1);

namespace McpState\Bench;

/**
 * What is measured of every peer: the same work on a session, in whatever way the peer keeps it.
 *
 * A round is a question to the client: send(), take(), deliver(), claim(). Each is complete by itself, since in a server
 * they happen in different requests: what a peer reads in one it may not keep for the next.
 */
interface Peer
{
    /** @param string $place a directory of the peer's own, in shared memory where there is some; or a DSN, or a socket */
    public function __construct(string $place);

    /** Makes $sessions sessions: the first $measured hold $content bytes of attributes, the others 1 kB. */
    public function populate(int $sessions, int $measured, int $content): void;

    /** Begins to work at the session of this number, as an owner of its own. */
    public function enter(int $session): void;

    /** Registers a request under a new id and queues its message. The id. */
    public function send(string $message): int;

    /** Takes the owner's queued messages: the last, null when there is none. */
    public function take(): ?string;

    /** Keeps the response of a registered request; false when there is no such request. */
    public function deliver(int $id, string $response): bool;

    /** Removes the request with its response; null when there is none. */
    public function claim(int $id): ?string;

    /** Reads the attribute `client.name`. */
    public function get(): ?string;

    /** Sets the attributes `client.name` and `client.version`. */
    public function patch(string $name, string $version): void;
}
