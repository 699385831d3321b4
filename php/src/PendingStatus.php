<?php

declare(strict_types=1);

namespace McpState;

/**
 * The status of a pending request.
 *
 * Answered, TimedOut and Cancelled are final: the claim that reports one of them has removed the request.
 */
enum PendingStatus: int
{
    /** The client responded in time. */
    case Answered = 1;

    /** The client has not responded yet, and the deadline has not passed. */
    case Waiting = 2;

    /** The deadline passed first. A response that arrives afterwards is late, and the store discards it (G4). */
    case TimedOut = 3;

    /** The request was cancelled first. */
    case Cancelled = 4;

    /** The request belongs to another owner, and only that owner may claim or cancel it (G3). */
    case NotOwner = 5;

    /** The session has no such request: it was never registered, or it has already been claimed. */
    case Unknown = 6;
}
