<?php

declare(strict_types=1);

namespace McpState\Tests\Support;

/**
 * Another PHP process, which runs a piece of code and communicates with the test line by line.
 *
 * The code can use `$store`, `$args` (the further arguments), `say($line)` and `hear()`. It must end by itself. The
 * failure of the test shows its output on stderr and its fatal errors.
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
            throw new \RuntimeException('Cannot start a PHP process.');
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

    /** Returns the next line of the child; fails if the child ends without one. */
    public function hear(): string
    {
        $line = \fgets($this->pipes[1]);

        if ($line === false) {
            throw new \RuntimeException("A child ended ({$this->end()}) without output: {$this->code}");
        }

        return \rtrim($line, "\n");
    }

    /** Waits until the child has ended, and returns its exit status. */
    public function end(): int
    {
        if ($this->exitCode === null) {
            \fclose($this->pipes[0]);
            \fclose($this->pipes[1]);
            $this->exitCode = \proc_close($this->process);
        }

        return $this->exitCode;
    }

    /** Kills the child at once, without destructors, shutdown functions or rollback. */
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
