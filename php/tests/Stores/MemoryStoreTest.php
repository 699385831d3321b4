<?php

declare(strict_types=1);

namespace McpState\Tests\Stores;

use McpState\Tests\Contract;
use McpState\Tests\Support\StoreTestCase;

/** The contract on `memory://`: each store is its own, and this process's alone. */
final class MemoryStoreTest extends StoreTestCase
{
    use Contract\StoreContract;

    protected static function place(string $name): string
    {
        return 'memory://';
    }
}
