<?php

declare(strict_types=1);

namespace McpState;

/** What {@see Owner::wait()} waits for. */
enum Interest: int
{
    /** One of the owner's pending requests was answered, timed out or was cancelled. */
    case Resolution = 1;

    /** A message to deliver: one of the owner's, or a broadcast if the owner is a stream. */
    case Message = 2;

    /** The client cancelled an in-flight request of the owner. */
    case Cancellation = 4;
}
