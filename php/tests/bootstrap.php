<?php

/**
 * Loads the library and the tests, and ends with one clear line where no backend is there to be tested.
 */

declare(strict_types=1);

use McpState\Exception\BackendMissing;
use McpState\Store;

require __DIR__ . '/../autoload.php';

spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'McpState\\Tests\\')) {
        require __DIR__ . '/' . strtr(substr($class, 15), '\\', '/') . '.php';
    }
});

try {
    Store::open('memory://');
} catch (BackendMissing $e) {
    fwrite(STDERR, $e->getMessage() . "\nRun php/tests/run, which loads build/mcp_state.so.\n");
    exit(2);
}
