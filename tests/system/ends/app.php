<?php

/**
 * A worker of test_request_end.py: attaches owners to two stores and leaves them to the end of its request, which it awaits.
 */

declare(strict_types=1);

use McpState\Store;

require __DIR__ . '/../../../php/autoload.php';

$data = getenv('TEST_DATA');
$living = "file://$data/living?durability=none";
$ids = array_map(fn (int $number) => "s$number", range(1, (int) $_GET['owners']));

switch ($_GET['do']) {
    case 'attach':
        foreach ($ids as $id) {
            foreach ([getenv('MCP_STATE_DSN'), $living] as $dsn) {
                Store::open($dsn)->createSession($id)->attach();
            }
        }
        touch("$data/attached");
        for ($until = microtime(true) + 30; !file_exists("$data/go") && microtime(true) < $until;) {
            usleep(2000);
        }
        break;
    case 'look':
        $store = Store::open($living);
        echo json_encode(array_map(fn (string $id) => $store->openSession($id)->stats()['owners'], $ids));
}
