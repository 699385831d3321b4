<?php

declare(strict_types=1);

namespace McpState;

/**
 * Where a pending request stands.
 *
 * Answered, TimedOut and Cancelled are final: the claim that reports one of them has removed the request.
 */
enum PendingStatus: int
{
    /** The client answered in time. */
    case Answered = 1;

    /** No answer yet, and the deadline has not passed. */
    case Waiting = 2;

    /** The deadline passed first. An answer that still comes is late: discarded, whoever waits. */
    case TimedOut = 3;

    /** Somebody cancelled it first. */
    case Cancelled = 4;

    /** It belongs to another owner, who alone may claim or cancel it. */
    case NotOwner = 5;

    /** There is no such request (any more): never registered, or claimed already. */
    case Unknown = 6;
}
