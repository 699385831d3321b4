<?php

declare(strict_types=1);

namespace McpState;

/** Why a client's answer was discarded: it matched no waiting request of its session. */
enum LateReason: int
{
    /** No request of this session had this id. */
    case Unknown = 1;

    /** The request was answered and claimed before. */
    case Finished = 2;

    /** The request's deadline passed before the answer came. */
    case TimedOut = 3;

    /** Another answer came first and waits to be claimed. The first one counts. */
    case AlreadyAnswered = 4;

    /** The request was cancelled before the answer came. */
    case Cancelled = 5;

    /** The request's owner ended (its PHP request finished, or its process died). */
    case Abandoned = 6;
}
