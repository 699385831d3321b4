<?php

declare(strict_types=1);

namespace McpState;

/** Why {@see Owner::wait()} returned. */
enum WaitStatus: int
{
    /** Something of interest happened. */
    case Ready = 1;

    /** The slice ended and nothing of interest happened. */
    case Deadline = 2;

    /** The session was destroyed, expired or was evicted. It stays gone. */
    case Destroyed = 3;

    /** A signal arrived: PHP runs its handlers now, then wait again. */
    case Interrupted = 4;
}
