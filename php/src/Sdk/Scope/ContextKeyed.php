<?php

declare(strict_types=1);

namespace McpState\Sdk\Scope;

/**
 * The process serves many exchanges at the same time, each in its own context: Swoole coroutines, ReactPHP, Amp,
 * fibers.
 *
 *     new ContextKeyed(fn () => \Swoole\Coroutine::getContext())
 *     new ContextKeyed(fn () => \Fiber::getCurrent() ?? 'main')
 *
 * An object is the best key, because the exchange ends together with it. With a number or string as the key, the
 * exchange ends when another one begins under the same key, or with {@see \McpState\Sdk\SessionManager::release()}. No
 * call blocks. The runtime must not switch to another exchange with the same key between the SDK's `exists()` and
 * `createWithId()`.
 */
final class ContextKeyed implements Scope
{
    /** @param \Closure(): (int|string|object) $key returns the key of the current context */
    public function __construct(private readonly \Closure $key)
    {
    }

    public function current(): int|string|object
    {
        return ($this->key)();
    }

    public function beginsAnew(): bool
    {
        return true;
    }

    public function mayBlock(): bool
    {
        return false;
    }

    public function isOneStream(): bool
    {
        return false;
    }
}
