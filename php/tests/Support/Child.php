<?php

declare(strict_types=1);

namespace McpState\Tests\Support;

/**
 * Another PHP process that runs a piece of code, and talks with the test line by line.
 *
 * The code finds `$store`, `$args` (the further arguments), `say($line)` and `hear()`. It must end by itself; what it
 * writes to stderr, and a fatal error, shows up in the failure of the test.
 */
final class Child
{
    /** @var resource */
    private $process;

    /** @var array<int, resource> */
    private array $pipes = [];

    private ?int $exitCode = null;

    public readonly int $pid;

    private function __construct(private readonly string $code, string $dsn, string ...$args)
    {
        $command = [\PHP_BINARY, '-d', 'display_errors=stderr', '-d', 'log_errors=0', __DIR__ . '/child-main.php'];
        $spec = [['pipe', 'r'], ['pipe', 'w'], \STDERR];
        $process = \proc_open([...$command, $code, $dsn, ...$args], $spec, $this->pipes);

        if ($process === false) {
            throw new \RuntimeException('No PHP process could be started.');
        }

        $this->process = $process;
        $this->pid = \proc_get_status($process)['pid'];
    }

    public static function start(string $code, string $dsn, string ...$args): self
    {
        return new self($code, $dsn, ...$args);
    }

    public function say(string $line): void
    {
        \fwrite($this->pipes[0], "$line\n");
    }

    /** The next line the child says; fails when it ends without saying any. */
    public function hear(): string
    {
        $line = \fgets($this->pipes[1]);

        if ($line === false) {
            throw new \RuntimeException("A child ended ({$this->end()}) without a word: {$this->code}");
        }

        return \rtrim($line, "\n");
    }

    /** Waits until the child has ended; its exit status. */
    public function end(): int
    {
        if ($this->exitCode === null) {
            \fclose($this->pipes[0]);
            \fclose($this->pipes[1]);
            $this->exitCode = \proc_close($this->process);
        }

        return $this->exitCode;
    }

    /** Ends the child at once, wherever it is: no destructor, no shutdown function, no rollback. */
    public function kill(): void
    {
        \posix_kill($this->pid, \SIGKILL);
        $this->end();
    }

    public function __destruct()
    {
        if ($this->exitCode === null) {
            $this->kill();
        }
    }
}
