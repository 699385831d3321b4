<?php

declare(strict_types=1);

namespace McpState\Internal;

use McpState\Exception\ExceptionInterface;
use McpState\Store;

/**
 * A store, or a closure that opens it on first use.
 *
 * The closure knows the DSN, which may contain a password. A weak map outside of the object holds the closure, so that
 * `var_dump()`, `print_r()`, `var_export()`, array casts and debuggers do not show the DSN.
 *
 * @internal
 */
final class StoreSource
{
    /** @var \WeakMap<self, Store|\Closure(): Store>|null */
    private static ?\WeakMap $sources = null;

    /** @param Store|\Closure(): Store $store */
    public function __construct(#[\SensitiveParameter] Store|\Closure $store)
    {
        self::$sources ??= new \WeakMap();
        self::$sources[$this] = $store;
    }

    /** @throws ExceptionInterface if the store cannot be opened */
    public function get(): Store
    {
        $store = self::$sources[$this]
            ?? throw new \LogicException('a StoreSource has no store, because its constructor did not run');

        if ($store instanceof \Closure) {
            self::$sources[$this] = $store = $store();
        }

        return $store;
    }

    private function __clone()
    {
    }

    /** @return array<never, never> */
    public function __serialize(): array
    {
        throw new \LogicException('an object that holds a store cannot be serialized; open the store anew');
    }
}
