<?php

declare(strict_types=1);

namespace McpState\Bench\Pairs;

/**
 * Pauses of 100 ms.
 */
final class Poll100 extends Poll
{
    protected const MICROSECONDS = 100_000;
}
