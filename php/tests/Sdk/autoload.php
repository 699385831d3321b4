<?php

/**
 * Loads the SDK for the tests of the drop-ins: the one that MCP_SDK_AUTOLOAD names, or, class by class, the doubles of
 * missing classes.
 */

declare(strict_types=1);

if (getenv('MCP_SDK_AUTOLOAD')) {
    require getenv('MCP_SDK_AUTOLOAD');
}

spl_autoload_register(static function (string $class): void {
    $file = __DIR__ . '/Double/Vendor/' . strtr($class, '\\', '/') . '.php';

    if (is_file($file)) {
        require $file;
    }
});
