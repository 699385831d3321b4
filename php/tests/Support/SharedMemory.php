<?php

declare(strict_types=1);

namespace McpState\Tests\Support;

/** Stores in shared memory. The process has them open until it ends, and then removes them. */
trait SharedMemory
{
    protected static function place(string $name): string
    {
        static $registered = false;

        if (!$registered) {
            $registered = true;
            \register_shutdown_function(self::removeStores(...));
        }

        return "shm://$name";
    }

    private static function removeStores(): void
    {
        foreach (['/run/mcp-state', '/dev/shm/mcp-state-*'] as $parent) {
            foreach ((array) \glob("$parent/mcp-state-test-" . \getmypid() . '-*', \GLOB_ONLYDIR) as $directory) {
                Directory::remove((string) $directory);
            }
        }
    }
}
