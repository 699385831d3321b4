<?php

/**
 * Calls the PHP API with random values: php fuzz.php [--calls=N] [--seed=S] [--dsn=DSN]…
 *
 * The script calls every public method of Store, Session, Owner and PendingRequest with random values of all types. The
 * outcome must be documented: a result, an exception of the library, or PHP's TypeError for a wrong type. In addition,
 * a session with only valid values must return the same results as a model in plain PHP.
 *
 * The script uses the backend of this PHP and prints the number of calls. It ends with status 1 at the first unexpected
 * outcome.
 */

declare(strict_types=1);

use McpState\Store;
use McpState\Tests\Fuzz\Tame;
use McpState\Tests\Fuzz\Wild;

require __DIR__ . '/bootstrap.php';

$options = getopt('', ['calls:', 'seed:', 'dsn:']);
$calls = (int) ($options['calls'] ?? 4000);
$seed = (int) ($options['seed'] ?? 1);
mt_srand($seed);

// A warning or notice is also unexpected.
set_error_handler(static function (int $level, string $text, string $file, int $line): never {
    throw new ErrorException($text, 0, $level, $file, $line);
});

$directory = sys_get_temp_dir() . '/mcp-state-fuzz-' . getmypid();
$dsns = (array) ($options['dsn'] ?? ['memory://?max_sessions=50', "file://$directory?durability=none&max_sessions=50"]);

register_shutdown_function(static function () use ($directory): void {
    if (!is_dir($directory)) {
        return;
    }

    $all = new RecursiveDirectoryIterator($directory, FilesystemIterator::SKIP_DOTS);

    foreach (new RecursiveIteratorIterator($all, RecursiveIteratorIterator::CHILD_FIRST) as $file) {
        $file->isDir() ? rmdir((string) $file) : unlink((string) $file);
    }

    rmdir($directory);
});

foreach ($dsns as $dsn) {
    $store = Store::open($dsn);
    $wild = $tame = null;

    for ($call = 0; $call < $calls; ++$call) {
        try {
            if ($call % 1000 === 0) {
                [$wild, $tame] = [new Wild($store), new Tame($store)];
            }

            $call % 2 === 0 ? $wild->call() : $tame->call();
        } catch (Throwable $e) {
            fwrite(STDERR, "call $call with --seed=$seed on $dsn: $e\n");
            exit(1);
        }
    }

    $backend = extension_loaded('mcp_state') ? 'extension' : 'FFI';
    $scheme = strstr($dsn, ':', true);
    echo "fuzz.php: $calls calls on $scheme through the $backend as documented and as in the model (seed $seed)\n";
}
