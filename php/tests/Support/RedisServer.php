<?php

declare(strict_types=1);

namespace McpState\Tests\Support;

use PHPUnit\Framework\Assert;

/**
 * A private Redis server on a Unix socket, which ends with this process however that dies. REDIS_SERVER names the program.
 */
final class RedisServer
{
    private static ?self $shared = null;

    /** @var resource */
    private $process;

    private readonly string $directory;

    private function __construct()
    {
        $this->directory = Directory::temporary();
        $program = \getenv('REDIS_SERVER') ?: 'redis-server';
        $command = ['setpriv', '--pdeathsig', 'KILL', $program, '--port', '0', '--unixsocket', $this->socket()];
        $log = ['file', "$this->directory/log", 'a'];
        $process = \proc_open([...$command, '--save', '', '--dir', $this->directory], [1 => $log, 2 => $log], $pipes);

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

    /** The socket of a server that all tests of this process share; the test is skipped where there is none. */
    public static function sharedSocket(): string
    {
        if (self::$shared === null) {
            $program = \getenv('REDIS_SERVER') ?: 'redis-server';
            $found = \shell_exec('command -v ' . \escapeshellarg($program) . ' && command -v setpriv');

            if (\substr_count((string) $found, "\n") !== 2) {
                Assert::markTestSkipped("$program or setpriv is not installed.");
            }

            self::$shared = new self();
            \register_shutdown_function(self::$shared->end(...));
        }

        return self::$shared->socket();
    }

    /** What the shared server answers to a command. */
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

    private function end(): void
    {
        \proc_terminate($this->process, \SIGKILL);
        \proc_close($this->process);
        Directory::remove($this->directory);
    }
}
