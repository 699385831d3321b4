<?php

declare(strict_types=1);

namespace McpState\Sdk\Scope;

/**
 * The process serves many exchanges at once, each in a context of its own: Swoole's coroutines, ReactPHP, Amp, fibers.
 *
 *     new ContextKeyed(fn () => \Swoole\Coroutine::getContext())
 *     new ContextKeyed(fn () => \Fiber::getCurrent() ?? 'main')
 *
 * An object as the key is best: the exchange ends with it. With a number or a string it ends when the same key begins
 * another, or with {@see \McpState\Sdk\SessionManager::release()}. Nothing blocks here. Between the SDK's `exists()` and
 * `createWithId()` the context must not be switched under the same key.
 */
final class ContextKeyed implements Scope
{
    /** @param \Closure(): (int|string|object) $key names the context that runs now */
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
