<?php

declare(strict_types=1);

namespace McpState;

/** What a cancellation found. Only Cancelled changed anything. */
enum CancelOutcome: int
{
    /** Cancelled now. */
    case Cancelled = 1;

    /** There is no such request (any more). */
    case Unknown = 2;

    /** Several requests with this id are in flight, and nothing says which one is meant: none was touched. */
    case Ambiguous = 3;

    /** The answer came first and waits to be claimed. */
    case AlreadyAnswered = 4;

    /** The deadline passed first. */
    case TimedOut = 5;

    /** It belongs to another owner, who alone may cancel it. */
    case NotOwner = 6;

    /** Cancelled before. */
    case AlreadyCancelled = 7;
}
