<?php

declare(strict_types=1);

namespace McpState\Bench\Pairs;

/**
 * Polls with pauses of 100 ms.
 */
final class Poll100 extends Poll
{
    protected const MICROSECONDS = 100_000;
}
