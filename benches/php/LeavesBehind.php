<?php

declare(strict_types=1);

namespace McpState\Bench;

/** A peer that stores data outside of its directory. */
interface LeavesBehind
{
    /** Removes the data that populate() created for the sessions below $measured. */
    public function remove(int $measured): void;
}
