<?php

/**
 * Loads the frameworks for the tests of the integrations: the real packages if INTEGRATION_AUTOLOAD names their
 * autoloader or Debian's Symfony is installed, and otherwise, class by class, the doubles.
 */

declare(strict_types=1);

require_once __DIR__ . '/../Sdk/autoload.php';

spl_autoload_register(static function (string $class): void {
    $places = [
        'McpState\\Symfony\\' => __DIR__ . '/../../symfony/src/',
        'Drupal\\mcp_state\\' => __DIR__ . '/../../drupal/mcp_state/src/',
        '' => __DIR__ . '/Double/',
    ];

    foreach ($places as $prefix => $directory) {
        $file = $directory . strtr(substr($class, strlen($prefix)), '\\', '/') . '.php';

        if (str_starts_with($class, $prefix) && is_file($file)) {
            require $file;

            return;
        }
    }
});

if (getenv('INTEGRATION_AUTOLOAD')) {
    require getenv('INTEGRATION_AUTOLOAD');
} else {
    foreach (['DependencyInjection', 'Config', 'Yaml', 'HttpKernel'] as $component) {
        @include_once "Symfony/Component/$component/autoload.php";
    }
}
