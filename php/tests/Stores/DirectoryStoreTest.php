<?php

declare(strict_types=1);

namespace McpState\Tests\Stores;

use McpState\Tests\Contract;
use McpState\Tests\Support\Directory;
use McpState\Tests\Support\StoreTestCase;

/** The contract on `file:///DIR`. */
final class DirectoryStoreTest extends StoreTestCase
{
    use Contract\StoreContract;

    private static ?string $directory = null;

    protected static function place(string $name): string
    {
        self::$directory ??= Directory::temporary();

        return 'file://' . self::$directory . "/$name?durability=none";
    }

    public static function tearDownAfterClass(): void
    {
        if (self::$directory !== null) {
            Directory::remove(self::$directory);
        }

        self::$directory = null;
    }
}
