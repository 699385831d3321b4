<?php

declare(strict_types=1);

namespace McpState\Tests\Support;

use PHPUnit\Framework\Assert;

/**
 * A private Redis server on a Unix socket. It ends together with this process, in whatever way that ends, and after the
 * extension's work at the end of the request. REDIS_SERVER names the program.
 */
final class RedisServer
{
    private static ?self $shared = null;

    /** @var resource */
    private $process;

    /** @var array<int, resource> */
    private array $pipes = [];

    private readonly string $directory;

    private function __construct()
    {
        $this->directory = Directory::temporary();
        $program = \getenv('REDIS_SERVER') ?: 'redis-server';
        // The shell reads from this process until the process ends.
        $command = ['sh', '-c', '"$@" & read -r _; kill -9 $!; rm -r "$0"', $this->directory];
        $server = [$program, '--port', '0', '--unixsocket', $this->socket(), '--save', '', '--dir', $this->directory];
        $log = ['file', "$this->directory/log", 'a'];
        $process = \proc_open([...$command, ...$server], [['pipe', 'r'], $log, $log], $this->pipes);

        for ($i = 0; $process !== false && $i < 2000; ++$i) {
            $connection = @\stream_socket_client("unix://{$this->socket()}");

            if ($connection !== false) {
                $this->process = $process;

                return;
            }

            \usleep(5000);
        }

        throw new \RuntimeException("$program did not start: " . \file_get_contents("$this->directory/log"));
    }

    /** Returns the socket of a server that all tests of this process share; skips the test if there is no server. */
    public static function sharedSocket(): string
    {
        if (self::$shared === null) {
            $program = \getenv('REDIS_SERVER') ?: 'redis-server';

            if ((string) \shell_exec('command -v ' . \escapeshellarg($program)) === '') {
                Assert::markTestSkipped("$program is not installed.");
            }

            self::$shared = new self();
        }

        return self::$shared->socket();
    }

    /** Sends a command to the shared server and returns the reply. */
    public static function ask(string $command): string
    {
        $connection = \stream_socket_client('unix://' . self::sharedSocket());
        \fwrite($connection, "$command\r\n");

        return (string) \fgets($connection);
    }

    private function socket(): string
    {
        return "$this->directory/redis.sock";
    }
}
