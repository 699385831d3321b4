<?php

declare(strict_types=1);

namespace McpState\Bench\Pairs;

/**
 * Polls with pauses of 10 ms.
 */
final class Poll10 extends Poll
{
    protected const MICROSECONDS = 10_000;
}
