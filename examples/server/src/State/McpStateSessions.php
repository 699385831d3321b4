<?php

declare(strict_types=1);

namespace McpState\Example\State;

use McpState\Store;

/**
 * Sessions in mcp-state.
 */
final class McpStateSessions implements Sessions
{
    public function __construct(private readonly Store $store, private readonly int $ttlMs)
    {
    }

    public function create(): SessionState
    {
        // Creating a session also collects a few expired ones, at a cost that grows only with their number.
        $this->store->collect(10);

        return new McpStateSession($this->store->createSession(ttlMs: $this->ttlMs), streams: false);
    }

    public function open(string $id, bool $streams): ?SessionState
    {
        $session = $this->store->openSession($id);

        return $session === null ? null : new McpStateSession($session, $streams);
    }

    public function destroy(string $id): bool
    {
        return $this->store->destroySession($id);
    }
}
