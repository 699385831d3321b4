<?php

declare(strict_types=1);

namespace McpState\Tests\Support;

/** Stores in shared memory, removed when the test class is done. */
trait SharedMemory
{
    protected static function place(string $name): string
    {
        return "shm://$name";
    }

    public static function tearDownAfterClass(): void
    {
        foreach (['/run/mcp-state', '/dev/shm', '/dev/shm/*'] as $parent) {
            foreach ((array) \glob("$parent/*mcp-state-test-" . \getmypid() . '-*', \GLOB_ONLYDIR) as $directory) {
                Directory::remove((string) $directory);
            }
        }
    }
}
