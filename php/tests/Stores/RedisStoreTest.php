<?php

declare(strict_types=1);

namespace McpState\Tests\Stores;

use McpState\Tests\Contract;
use McpState\Tests\Support\RedisServer;
use McpState\Tests\Support\StoreTestCase;

/** The contract on `redis+unix://`, each store under a prefix of its own. */
final class RedisStoreTest extends StoreTestCase
{
    use Contract\StoreContract;

    protected static function place(string $name): string
    {
        return 'redis+unix://' . RedisServer::sharedSocket() . "?prefix=$name";
    }
}
