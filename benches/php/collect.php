<?php

/**
 * Collecting expired sessions, driven by benches/run:
 *
 *     php collect.php PEER PLACE SESSIONS
 *
 * The script creates the sessions and prints `ready`. It answers each line `run EXPIRED` with one line of JSON: the
 * nanoseconds that it took to collect EXPIRED further sessions.
 */

declare(strict_types=1);

namespace McpState\Bench;

require __DIR__ . '/bootstrap.php';

const COLLECTIONS = [
    'ours-extension' => Collections\Ours::class,
    'ours-ffi' => Collections\Ours::class,
    'file-blob' => Collections\FileBlob::class,
];

[, $name, $place, $sessions] = $argv;
$class = COLLECTIONS[$name];
$collection = new $class($place);
$collection->fill((int) $sessions);
$collection->collect();
echo "ready\n";
while (($line = fgets(STDIN)) !== false) {
    $expired = (int) substr($line, 4);
    $collection->expire($expired);
    $start = hrtime(true);
    $collected = $collection->collect();
    $time = hrtime(true) - $start;
    if ($collected !== $expired) {
        fwrite(STDERR, "collect.php: collected $collected of $expired sessions\n");
        exit(1);
    }
    echo json_encode([['ns' => $time]]), "\n";
}
