<?php

declare(strict_types=1);

namespace McpState;

/** The kinds of owner, by what they can deliver to the client. */
enum OwnerKind: int
{
    /** An SSE stream, which can carry any message: it also takes broadcasts. */
    case Stream = 1;

    /** A plain reply to one HTTP request: it never takes a broadcast. */
    case Reply = 2;
}
