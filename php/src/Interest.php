<?php

declare(strict_types=1);

namespace McpState;

/** The events that {@see Owner::wait()} can wait for. */
enum Interest: int
{
    /** The client answered one of the owner's pending requests, or one of them timed out or was cancelled. */
    case Resolution = 1;

    /** An outgoing message is queued: one of the owner's or, for a stream, a broadcast. */
    case Message = 2;

    /** The client cancelled one of the owner's in-flight requests. */
    case Cancellation = 4;
}
