<?php

/**
 * The common part of the workers: autoloading, processes, samples.
 */

declare(strict_types=1);

namespace McpState\Bench;

require __DIR__ . '/../../php/autoload.php';
const FOLDERS = ['\\' => '/', 'Peers\\' => 'peers/', 'Pairs\\' => 'pairs/', 'Collections\\' => 'collections/'];

spl_autoload_register(static function (string $class): void {
    $name = str_starts_with($class, __NAMESPACE__ . '\\') ? substr($class, strlen(__NAMESPACE__) + 1) : '';
    $file = __DIR__ . '/' . strtr($name, FOLDERS) . '.php';
    if ($name !== '' && is_file($file)) {
        require $file;
    }
});

/** Sorts the samples and returns [count, median, 99th percentile]. */
function summary(array $samples): array
{
    sort($samples);
    $last = count($samples) - 1;
    $at = static fn (int $percent): int => $samples[min($last, intdiv(($last + 1) * $percent, 100))] ?? 0;

    return [count($samples), $at(50), $at(99)];
}

/** Runs $job in a child process, and returns the parent's end of the socket pair between them. */
function fork(\Closure $job)
{
    [$ours, $theirs] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
    foreach ([$ours, $theirs] as $end) {
        // The default of a minute is too short, because other peers may be populated meanwhile.
        stream_set_timeout($end, 600);
    }
    $pid = pcntl_fork();
    if ($pid === 0) {
        fclose($ours);
        fclose(STDIN);
        try {
            $job($theirs);
        } catch (\Throwable $e) {
            fwrite(STDERR, "$e\n");
            exit(1);
        }
        exit(0);
    }
    fclose($theirs);

    return $ours;
}

/** Reads the next line from another process. */
function line($stream): string
{
    $line = fgets($stream);
    if ($line === false) {
        fwrite(STDERR, "bootstrap.php: a child process ended early\n");
        exit(1);
    }

    return trim($line);
}
