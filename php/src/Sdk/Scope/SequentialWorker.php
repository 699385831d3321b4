<?php

declare(strict_types=1);

namespace McpState\Sdk\Scope;

/**
 * The process serves one exchange after another with the same manager: FrankenPHP's worker mode, RoadRunner.
 *
 * Each exchange begins with the SDK's call of `gc()`, which ends the previous exchange. Until then the previous
 * exchange keeps its owner; {@see \McpState\Sdk\SessionManager::release()} ends it at once. This scope is unsuitable
 * for stdio, where the response to a question is the next message of the same exchange.
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
