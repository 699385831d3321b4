<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

/**
 * One request of the client that the SDK serves in a fiber. It ends with the fiber, whether the handler returned or the
 * SDK let go of it.
 *
 * @internal
 */
final class Call
{
    /** The JSON-RPC id of the client's request, where it is known. */
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

    /** Whether the handler returned, while something holds on to its fiber still. */
    public function hasReturned(): bool
    {
        return $this->fiber->get()?->isTerminated() ?? false;
    }

    public function hasEnded(): bool
    {
        return $this->fiber->get()?->isTerminated() ?? true;
    }
}
