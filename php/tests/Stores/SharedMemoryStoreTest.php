<?php

declare(strict_types=1);

namespace McpState\Tests\Stores;

use McpState\Tests\Contract;
use McpState\Tests\Support\SharedMemory;
use McpState\Tests\Support\StoreTestCase;

/** The contract on `shm://NAME`. */
final class SharedMemoryStoreTest extends StoreTestCase
{
    use Contract\StoreContract;
    use SharedMemory;
}
