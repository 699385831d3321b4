<?php

declare(strict_types=1);

namespace McpState\Sdk\Scope;

/**
 * One client on stdin and stdout: all its messages are one exchange, since the answer to a question is just the next
 * line. Nothing blocks, or that line would not be read.
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
