<?php

/**
 * What of the time of reading an attribute is PHP's own: the same loop as round.php, around nothing, around the least call of the
 * library (it asks the extension, which asks no store), and around the reading. For benches/php-costs:
 *
 *     php floor.php PLACE
 *
 * Prints one line of JSON: of each the median in nanoseconds, over slices in turn.
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
