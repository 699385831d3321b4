<?php

declare(strict_types=1);

namespace McpState;

/** What {@see Owner::beginRequest()} does when a request with the same JSON-RPC id is in flight. */
enum DuplicatePolicy: int
{
    /** Serve both; each keeps its own answer. Right for clients that give every call the same id. */
    case Isolate = 1;

    /** Refuse the second one (JSON-RPC error -32600, HTTP status 409). */
    case Reject = 2;
}
