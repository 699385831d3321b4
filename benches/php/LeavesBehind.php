<?php

declare(strict_types=1);

namespace McpState\Bench;

/**
 * A peer that keeps something outside of its directory.
 */
interface LeavesBehind
{
    /** Removes what populate() made for sessions below $measured. */
    public function remove(int $measured): void;
}
