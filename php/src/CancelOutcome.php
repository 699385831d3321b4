<?php

declare(strict_types=1);

namespace McpState;

/** The result of a cancellation. Only Cancelled means that the call changed something. */
enum CancelOutcome: int
{
    /** This call cancelled the request. */
    case Cancelled = 1;

    /** The session has no such request, or has it no longer. */
    case Unknown = 2;

    /**
     * Several requests with this id are in flight. The call cancelled none of them, because the id does not say which.
     */
    case Ambiguous = 3;

    /** The client's response arrived first and can be claimed. */
    case AlreadyAnswered = 4;

    /** The deadline passed first. */
    case TimedOut = 5;

    /** The request belongs to another owner, and only that owner may cancel it. */
    case NotOwner = 6;

    /** An earlier call cancelled the request. */
    case AlreadyCancelled = 7;
}
