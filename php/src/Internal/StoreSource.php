<?php

declare(strict_types=1);

namespace McpState\Internal;

use McpState\Exception\ExceptionInterface;
use McpState\Store;

/**
 * A store, or what opens it when it is first needed.
 *
 * What opens a store knows its DSN, and a DSN may have a password. So it is kept beside the object and not in it: no
 * `var_dump()`, `print_r()`, `var_export()`, array cast or debugger that shows the object shows the DSN.
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

    /** @throws ExceptionInterface when it cannot be opened */
    public function get(): Store
    {
        $store = self::$sources[$this] ?? throw new \LogicException('a store source has no store: it was not made by its constructor');

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
        throw new \LogicException('what keeps a store cannot be serialized: open it anew where it is needed');
    }
}
