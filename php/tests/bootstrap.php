<?php

/**
 * Loads the library and the tests, and ends with one clear line if there is no backend to test.
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

if (getenv('MCP_STATE_BACKEND') === 'ffi' && extension_loaded('mcp_state')) {
    fwrite(STDERR, "The extension mcp_state is loaded, so the tests would not run through FFI.\n");
    exit(2);
}

try {
    Store::open('memory://');
} catch (BackendMissing $e) {
    fwrite(STDERR, $e->getMessage() . "\nRun php/tests/run, which sets up a backend.\n");
    exit(2);
}
