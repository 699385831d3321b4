<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

/**
 * One request of the client that the SDK serves in a fiber. The call ends with the fiber: when the handler returns, or
 * when the SDK drops the fiber.
 *
 * @internal
 */
final class Call
{
    /** The JSON-RPC id of the client's request; null if unknown. */
    public int|string|null $requestId = null;

    /** @var \WeakReference<\Fiber<mixed, mixed, mixed, mixed>> */
    private readonly \WeakReference $fiber;

    /** @param \Fiber<mixed, mixed, mixed, mixed> $fiber */
    public function __construct(\Fiber $fiber)
    {
        $this->fiber = \WeakReference::create($fiber);
    }

    public function isOf(\Fiber $fiber): bool
    {
        return $this->fiber->get() === $fiber;
    }

    public function isSuspended(): bool
    {
        return $this->fiber->get()?->isSuspended() ?? false;
    }

    /** Tells whether the handler has returned while the fiber still exists. */
    public function hasReturned(): bool
    {
        return $this->fiber->get()?->isTerminated() ?? false;
    }

    /** Tells whether the handler has returned or the SDK has dropped the fiber. */
    public function hasEnded(): bool
    {
        return $this->fiber->get()?->isTerminated() ?? true;
    }
}
