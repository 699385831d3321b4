<?php

/** Loads the double of the SDK, our library and the tests' classes. */

declare(strict_types=1);

require __DIR__ . '/../../../php/autoload.php';
require __DIR__ . '/../../../php/tests/Sdk/autoload.php';

spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'McpState\\Tests\\')) {
        require __DIR__ . '/../../../php/tests/' . strtr(substr($class, 15), '\\', '/') . '.php';
    }
});
