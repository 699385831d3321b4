<?php

/**
 * Repeats one operation, so that benches/php-costs can count its instructions:
 *
 *     php operations.php round|get|patch|call TIMES PLACE
 *
 * `call` is the cheapest call of the library: a method that calls the extension without a store access.
 */

declare(strict_types=1);

namespace McpState\Bench;

use McpState\Store;

require __DIR__ . '/bootstrap.php';

[, $what, $times, $place] = $argv;
$store = Store::open($place);
$peer = new Peers\Ours($place);
$peer->populate(1, 1, 10_000);
$peer->enter(0);
$request = '{"jsonrpc":"2.0","method":"elicitation/create","params":{"message":"' . str_repeat('x', 530) . '"}}';
$response = '{"jsonrpc":"2.0","result":{"action":"accept","content":"' . str_repeat('x', 540) . '"}}';
$do = [
    'round' => static function () use ($peer, $request, $response): void {
        $id = $peer->send($request);
        $peer->take();
        $peer->deliver($id, $response);
        $peer->claim($id);
    },
    'get' => $peer->get(...),
    'patch' => static fn () => $peer->patch('bench', '1.0'),
    'call' => $store->dsn(...),
];
array_map(static fn (\Closure $warm): mixed => $warm(), $do);
[$do, $times] = [$do[$what], (int) $times];
for ($time = 0; $time < $times; ++$time) {
    $do();
}
