<?php

declare(strict_types=1);

namespace McpState\Sdk\Scope;

/**
 * The process serves one exchange after another with one manager: FrankenPHP's worker mode, RoadRunner.
 *
 * Each begins with the SDK's call of `gc()`, which ends the one before. Until then that one keeps its owner;
 * {@see \McpState\Sdk\SessionManager::release()} ends it at once. Never for stdio, where the answer to a question is the
 * next message of the same exchange.
 */
final class SequentialWorker implements Scope
{
    public function current(): int
    {
        return 0;
    }

    public function beginsAnew(): bool
    {
        return true;
    }

    public function mayBlock(): bool
    {
        return true;
    }

    public function isOneStream(): bool
    {
        return false;
    }
}
