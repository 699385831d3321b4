<?php

/**
 * One process waits for an answer, and another delivers it. benches/run controls the script:
 *
 *     php wake.php PEER PLACE
 *
 * The script prints `ready`, and answers each line `run MILLISECONDS IDLE-MICROSECONDS` with one line of JSON. The line
 * has the ids of the processes, the waiting one first, and [count, median, 99th percentile] of the nanoseconds until
 * the waiting process continues, from the start and from the end of the call that answers. By then that process has
 * waited for about IDLE-MICROSECONDS.
 */

declare(strict_types=1);

namespace McpState\Bench;

require __DIR__ . '/bootstrap.php';

const PAIRS = [
    'ours-extension' => Pairs\Ours::class,
    'ours-write-map' => Pairs\Ours::class,
    'ours-ffi' => Pairs\Ours::class,
    'ours-redis' => Pairs\Ours::class,
    'poll-100ms' => Pairs\Poll100::class,
    'poll-10ms' => Pairs\Poll10::class,
    'redis-blpop' => Pairs\RedisBlpop::class,
];
const LEAST = 3;

[, $name, $place] = $argv;
$class = PAIRS[$name];
line(fork(static function ($driver) use ($class, $place): void {
    $class::prepare($place);
    fwrite($driver, "prepared\n");
}));

$waiting = fork(static function ($other) use ($class, $place): void {
    $pair = new $class($place);
    fwrite($other, getmypid() . "\n");
    while (fgets($other) !== false) {
        fwrite($other, $pair->ask() . "\n");
        $pair->wait();
        $woken = hrtime(true);
        $pair->finish();
        fwrite($other, "$woken\n");
    }
});
$pid = (int) line($waiting);

$answering = fork(static function ($driver) use ($class, $place, $waiting, $pid): void {
    $pair = new $class($place);
    fwrite($driver, "ready\n");
    while (($line = fgets($driver)) !== false) {
        [, $milliseconds, $idle] = array_map(intval(...), explode(' ', $line));
        $samples = ['wake' => [], 'after' => []];
        $end = hrtime(true) + $milliseconds * 1_000_000;
        while (hrtime(true) < $end || count($samples['wake']) < LEAST) {
            fwrite($waiting, "ask\n");
            $question = line($waiting);
            if ($idle > 0) {
                usleep($idle);
            }
            $start = hrtime(true);
            $pair->answer($question);
            $done = hrtime(true);
            $woken = (int) line($waiting);
            $samples['wake'][] = $woken - $start;
            $samples['after'][] = max(0, $woken - $done);
        }
        $report = ['pids' => [$pid, getmypid()]] + array_map(summary(...), $samples);
        fwrite($driver, json_encode($report) . "\n");
    }
});
fclose($waiting);
line($answering);
echo "ready\n";
while (($line = fgets(STDIN)) !== false) {
    fwrite($answering, $line);
    $report = line($answering);
    echo "[$report]\n";
}
fclose($answering);
while (pcntl_wait($status) > 0) {
    continue;
}
