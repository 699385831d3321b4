<?php

declare(strict_types=1);

namespace McpState;

/** What {@see Owner::beginRequest()} does if a request with the same JSON-RPC id is already in flight (G6). */
enum DuplicatePolicy: int
{
    /**
     * Serve both requests; each keeps its own response. Choose this for clients that give every request the same id.
     */
    case Isolate = 1;

    /** Refuse the second request (JSON-RPC error -32600, HTTP status 409). */
    case Reject = 2;
}
