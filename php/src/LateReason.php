<?php

declare(strict_types=1);

namespace McpState;

/** Why the store discarded a client's response: the response matched no waiting pending request of its session (G4). */
enum LateReason: int
{
    /** The session never had a pending request with this id. */
    case Unknown = 1;

    /** The request had already been answered and claimed. */
    case Finished = 2;

    /** The deadline of the request passed before the response arrived. */
    case TimedOut = 3;

    /** Another response arrived first and has not been claimed yet. The first response counts. */
    case AlreadyAnswered = 4;

    /** The request was cancelled before the response arrived. */
    case Cancelled = 5;

    /** The owner of the request ended, because its PHP request finished or its process died. */
    case Abandoned = 6;
}
