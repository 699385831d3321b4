<?php

/**
 * Loads the classes of this example and of the Composer library without Composer.
 */

declare(strict_types=1);

spl_autoload_register(static function (string $class): void {
    $prefix = 'McpState\\Example\\';
    if (str_starts_with($class, $prefix)) {
        require __DIR__ . '/src/' . strtr(substr($class, strlen($prefix)), '\\', '/') . '.php';
    }
});

require_once __DIR__ . '/../../php/autoload.php';
