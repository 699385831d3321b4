<?php

declare(strict_types=1);

namespace McpState;

/** What an owner can deliver to the client. */
enum OwnerKind: int
{
    /** A stream (SSE) that can carry any message: it also takes broadcasts. */
    case Stream = 1;

    /** A plain reply to one request: it never takes a broadcast. */
    case Reply = 2;
}
