<?php

declare(strict_types=1);

namespace McpState\Tests\Stores;

use McpState\Tests\Contract;
use McpState\Tests\Support\StoreTestCase;

/** The contract on `memory://`, whose stores are private to this process. */
final class MemoryStoreTest extends StoreTestCase
{
    use Contract\StoreContract;

    protected static function place(string $name): string
    {
        return 'memory://';
    }
}
