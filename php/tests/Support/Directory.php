<?php

declare(strict_types=1);

namespace McpState\Tests\Support;

/** Temporary directories of tests. */
final class Directory
{
    public static function temporary(): string
    {
        $directory = \sys_get_temp_dir() . '/mcp-state-test-' . \bin2hex(\random_bytes(6));
        \mkdir($directory, 0700);

        return $directory;
    }

    public static function remove(string $directory): void
    {
        foreach (\array_diff((array) \scandir($directory), ['.', '..']) as $name) {
            $path = "$directory/$name";
            \is_dir($path) && !\is_link($path) ? self::remove($path) : \unlink($path);
        }

        \rmdir($directory);
    }
}
