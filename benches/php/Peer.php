<?php

declare(strict_types=1);

namespace McpState\Bench;

/**
 * The operations that are measured for every peer: the same work on a session, whatever the peer's way to store it.
 *
 * A round is one question to the client: send(), take(), deliver(), claim(). In a server these steps run in different
 * requests, so each step is complete, and a peer may not keep data from one step to the next.
 */
interface Peer
{
    /** @param string $place a private directory of the peer, in shared memory if possible; or a DSN, or a socket */
    public function __construct(string $place);

    /** Creates $sessions sessions. The first $measured have $content bytes of attributes, the others 1 kB. */
    public function populate(int $sessions, int $measured, int $content): void;

    /** Selects the session with this number and attaches a new owner. */
    public function enter(int $session): void;

    /** Registers a request under a new id, queues its message, and returns the id. */
    public function send(string $message): int;

    /** Takes the owner's queued messages and returns the last one; null if there is none. */
    public function take(): ?string;

    /** Stores the response of a registered request; false if there is no such request. */
    public function deliver(int $id, string $response): bool;

    /** Removes the request and returns its response; null if there is none. */
    public function claim(int $id): ?string;

    /** Returns the attribute `client.name`. */
    public function get(): ?string;

    /** Sets the attributes `client.name` and `client.version`. */
    public function patch(string $name, string $version): void;
}
