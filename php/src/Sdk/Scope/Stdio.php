<?php

declare(strict_types=1);

namespace McpState\Sdk\Scope;

/**
 * The process serves one client on stdin and stdout. All its messages are one exchange, because the response to a
 * question is the next line of the input. No read blocks, or the process would never read that line.
 */
final class Stdio implements Scope
{
    public function current(): int
    {
        return 0;
    }

    public function beginsAnew(): bool
    {
        return false;
    }

    public function mayBlock(): bool
    {
        return false;
    }

    public function isOneStream(): bool
    {
        return true;
    }
}
