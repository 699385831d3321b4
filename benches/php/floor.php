<?php

/**
 * Measures how much of the time of reading an attribute PHP itself needs, for benches/php-costs. The loop is that of
 * round.php. Its body is empty, or the cheapest call of the library (into the extension, without a store access), or
 * the read of the attribute:
 *
 *     php floor.php PLACE
 *
 * The script prints one line of JSON: the median of each in nanoseconds, over alternating slices.
 */

declare(strict_types=1);

namespace McpState\Bench;

use McpState\Store;

require __DIR__ . '/bootstrap.php';

const SLICES = 50;
const TIMES = 2000;

[, $place] = $argv;
$store = Store::open($place);
$peer = new Peers\Ours($place);
$peer->populate(100, 1, 10_000);
$peer->enter(0);
$steps = [
    'nothing' => static fn () => null,
    'call' => static fn () => $store->dsn(),
    'get' => static fn () => $peer->get(),
];
$medians = array_fill_keys(array_keys($steps), []);
for ($slice = 0; $slice < SLICES; ++$slice) {
    foreach ($steps as $name => $step) {
        $samples = [];
        for ($time = 0; $time < TIMES; ++$time) {
            $begun = hrtime(true);
            $step();
            $end = hrtime(true);
            $samples[] = $end - $begun;
        }
        $medians[$name][] = summary($samples)[1];
    }
}
echo json_encode(array_map(static fn (array $all): int => summary($all)[1], $medians)), "\n";
