<?php

declare(strict_types=1);

namespace McpState\Tests\Stores;

use McpState\Exception\StoreFull;
use McpState\Tests\Contract;
use McpState\Tests\Support\RedisServer;
use McpState\Tests\Support\StoreTestCase;

/** The contract on `redis+unix://`, with one key prefix per store. */
final class RedisStoreTest extends StoreTestCase
{
    use Contract\StoreContract;

    protected static function place(string $name): string
    {
        return 'redis+unix://' . RedisServer::sharedSocket() . "?prefix=$name";
    }

    /** The server limits the size of the whole store. */
    public function testG10AFullStoreCanBeEmptiedAndUsedAgain(): void
    {
        $owner = $this->createOwner();
        $owner->enqueueOutgoing('1');
        RedisServer::ask('CONFIG SET maxmemory 1');

        try {
            self::assertThrows(StoreFull::class, static fn () => $owner->enqueueOutgoing('2'));
            self::assertThrows(StoreFull::class, fn () => $this->createSession());
            self::assertBodies(['1'], $owner->takeOutgoing());
            self::assertTrue($owner->session->destroy());
        } finally {
            RedisServer::ask('CONFIG SET maxmemory 0');
        }

        $again = $this->createOwner();
        $again->enqueueOutgoing('3');
        self::assertBodies(['3'], $again->takeOutgoing());
    }
}
