<?php

/**
 * Runs rounds on one peer in several processes. benches/run controls it:
 *
 *     php round.php PEER PLACE PROCESSES one|many SESSIONS CONTENT-BYTES MESSAGE-BYTES PENDING
 *
 * The script creates the sessions, and in the first one the requests that stay pending, and prints `ready`. It answers
 * each line `run MILLISECONDS` with one line of JSON: for each process the number of its rounds, their nanoseconds, the
 * number of wrong rounds, and for each step [count, median, 99th percentile] in nanoseconds. With `one`, all processes
 * use the same session, each with its own owner.
 *
 * Each process opens the peer after the fork, like the workers of a server. (APCu's memory belongs to the parent, and
 * the fork shares it.)
 */

declare(strict_types=1);

namespace McpState\Bench;

require __DIR__ . '/bootstrap.php';

const PEERS = [
    'ours-extension' => Peers\Ours::class,
    'ours-write-map' => Peers\Ours::class,
    'ours-ffi' => Peers\Ours::class,
    'ours-redis' => Peers\Ours::class,
    'file-blob' => Peers\FileBlob::class,
    'file-blob-flock' => Peers\FileBlobFlock::class,
    'apcu-blob' => Peers\ApcuBlob::class,
    'apcu-blob-flock' => Peers\ApcuBlobFlock::class,
    'redis-blob' => Peers\RedisBlob::class,
    'redis-blob-flock' => Peers\RedisBlobFlock::class,
    'sysv-shm' => Peers\SysvShm::class,
    'sqlite' => Peers\Sqlite::class,
    'redis-lua' => Peers\RedisLua::class,
];
const STEPS = ['send', 'take', 'deliver', 'claim'];

/** Returns a JSON text of $bytes bytes. */
function padded(string $before, string $after, int $bytes): string
{
    return $before . str_repeat('x', max(0, $bytes - strlen($before . $after))) . $after;
}

/** Runs rounds for $nanoseconds. If $alone, then reads one attribute and changes two, for a fifth of that time each. */
function slice(Peer $peer, int $nanoseconds, string $message, string $response, bool $alone): array
{
    $samples = array_fill_keys(['round', ...STEPS, 'get', 'patch'], []);
    $wrong = 0;
    $start = hrtime(true);
    do {
        $begun = hrtime(true);
        $id = $peer->send($message);
        $sent = hrtime(true);
        $taken = $peer->take();
        $takenAt = hrtime(true);
        $delivered = $peer->deliver($id, $response);
        $deliveredAt = hrtime(true);
        $claimed = $peer->claim($id);
        $end = hrtime(true);
        $samples['round'][] = $end - $begun;
        $samples['send'][] = $sent - $begun;
        $samples['take'][] = $takenAt - $sent;
        $samples['deliver'][] = $deliveredAt - $takenAt;
        $samples['claim'][] = $end - $deliveredAt;
        if (!$delivered || $taken === null || $claimed !== $response) {
            ++$wrong;
        }
    } while ($end - $start < $nanoseconds);
    $rounds = count($samples['round']);
    $report = ['rounds' => $rounds, 'ns' => $end - $start, 'wrong' => $wrong];
    if (!$alone) {
        return $report + ['steps' => ['round' => summary($samples['round'])]];
    }
    $others = ['get' => static fn () => $peer->get(), 'patch' => static fn () => $peer->patch('bench', '1.0')];
    foreach ($others as $name => $step) {
        $start = hrtime(true);
        do {
            $begun = hrtime(true);
            $step();
            $end = hrtime(true);
            $samples[$name][] = $end - $begun;
        } while ($end - $start < $nanoseconds / 5);
    }

    return $report + ['steps' => array_map(summary(...), $samples)];
}

[, $name, $place, $processes, $spread, $sessions, $content, $bytes, $pending] = $argv;
$class = PEERS[$name];
$numbers = [$processes, $sessions, $content, $bytes, $pending];
[$processes, $sessions, $content, $bytes, $pending] = array_map(intval(...), $numbers);
$measured = $spread === 'one' ? 1 : $processes;

line(fork(static function ($driver) use ($class, $place, $sessions, $measured, $content): void {
    (new $class($place))->populate($sessions, $measured, $content);
    fwrite($driver, "populated\n");
}));
$message = padded('{"jsonrpc":"2.0","method":"elicitation/create","params":{"message":"', '"}}', $bytes);
$response = padded('{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"text":"', '"}}}', $bytes);
$workers = [];
for ($number = 0; $number < $processes; ++$number) {
    $session = $spread === 'one' ? 0 : $number;
    $workers[] = fork(static function ($driver) use ($class, $place, $processes, $session, $pending, $message, $response): void {
        $others = new $class($place);
        $others->enter($session);
        for ($request = 0; $request < $pending; ++$request) {
            $others->send($message);
            $others->take();
        }
        $peer = new $class($place);
        $peer->enter($session);
        fwrite($driver, "ready\n");
        while (($line = fgets($driver)) !== false) {
            $report = slice($peer, (int) substr($line, 4) * 1_000_000, $message, $response, $processes === 1);
            fwrite($driver, json_encode($report) . "\n");
        }
    });
}
array_map(line(...), $workers);
echo "ready\n";
while (($line = fgets(STDIN)) !== false) {
    foreach ($workers as $worker) {
        fwrite($worker, $line);
    }
    $reports = array_map(line(...), $workers);
    echo '[', implode(',', $reports), "]\n";
}
array_map(fclose(...), $workers);
while (pcntl_wait($status) > 0) {
    continue;
}
if (is_a($class, LeavesBehind::class, true)) {
    (new $class($place))->remove($measured);
}
