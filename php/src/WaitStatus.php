<?php

declare(strict_types=1);

namespace McpState;

/** Why {@see Owner::wait()} returned. */
enum WaitStatus: int
{
    /** An event of interest happened. */
    case Ready = 1;

    /** The slice ended without an event of interest. */
    case Deadline = 2;

    /** The session was destroyed, expired or evicted. This is final (G7). */
    case Destroyed = 3;

    /** A signal arrived. PHP runs its signal handlers now; call `wait()` again afterwards. */
    case Interrupted = 4;
}
