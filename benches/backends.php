<?php

/**
 * What a call costs through the extension and through FFI: nanoseconds, the best of five rounds, everything included that a
 * caller of the library pays. On a store in memory, so that it is the border that is measured, and on one in shared memory.
 *
 *     php benches/backends.php            both, side by side (make bench)
 */

declare(strict_types=1);

use McpState\Store;

const ROUNDS = 5;
const CALLS = 2000;

/** @return array<string, float> nanoseconds by call */
function measure(string $dsn): array
{
    $store = Store::open($dsn);
    $session = $store->createSession();
    $owner = $session->attach();
    $session->set('short', 'sixteen bytes ok');
    $session->set('long', str_repeat('x', 64 * 1024));
    $calls = [
        'open a session' => static fn () => $store->openSession($session->id),
        'get 16 bytes' => static fn () => $session->get('short'),
        'get 64 KiB' => static fn () => $session->get('long'),
        'set 16 bytes' => static fn () => $session->set('short', 'sixteen bytes ok'),
        'queue and take a message' => static function () use ($owner): void {
            $owner->enqueueOutgoing('{"jsonrpc":"2.0","method":"notifications/progress"}');
            $owner->takeOutgoing();
        },
        'ask, deliver, claim' => static function () use ($owner, $session): void {
            $question = $owner->sendRequest('{"jsonrpc":"2.0","method":"elicitation/create"}');
            $owner->takeOutgoing();
            $session->deliverResponse($question->id, '{"action":"accept"}');
            $question->claim();
        },
    ];
    $costs = [];

    foreach ($calls as $name => $call) {
        $costs[$name] = INF;

        for ($round = 0; $round < ROUNDS; ++$round) {
            $start = hrtime(true);

            for ($i = 0; $i < CALLS; ++$i) {
                $call();
            }

            $costs[$name] = min($costs[$name], (hrtime(true) - $start) / CALLS);
        }
    }

    $session->destroy();

    return $costs;
}

$root = dirname(__DIR__);

if (isset($argv[1])) {
    require "$root/php/autoload.php";
    echo json_encode(measure($argv[1]), JSON_THROW_ON_ERROR);
    exit;
}

$backends = [
    'extension' => ['-d', "extension=$root/build/mcp_state.so"],
    'FFI' => ['-d', 'ffi.enable=1'],
];

$directory = (is_writable('/dev/shm') ? '/dev/shm' : sys_get_temp_dir()) . '/mcp-state-bench-' . getmypid();
mkdir($directory, 0700);
register_shutdown_function(static function () use ($directory): void {
    $files = new RecursiveDirectoryIterator($directory, FilesystemIterator::SKIP_DOTS);

    foreach (new RecursiveIteratorIterator($files, RecursiveIteratorIterator::CHILD_FIRST) as $file) {
        $file->isDir() ? rmdir($file->getPathname()) : unlink($file->getPathname());
    }

    rmdir($directory);
});

foreach (['memory' => 'memory://', 'shared memory' => "file://$directory/store?durability=none"] as $place => $dsn) {
    $costs = [];

    foreach ($backends as $backend => $options) {
        $process = proc_open([PHP_BINARY, ...$options, __FILE__, $dsn], [1 => ['pipe', 'w']], $pipes);
        $costs[$backend] = json_decode((string) stream_get_contents($pipes[1]), true);

        if (proc_close($process) !== 0 || !is_array($costs[$backend])) {
            fwrite(STDERR, "backends: no figures through $backend\n");
            exit(1);
        }
    }

    printf("%-28s%14s%14s\n", "ns a call, $place", ...array_keys($costs));

    foreach ($costs['extension'] as $name => $cost) {
        printf("%-28s%14s%14s\n", $name, number_format($cost), number_format($costs['FFI'][$name]));
    }

    echo "\n";
}
