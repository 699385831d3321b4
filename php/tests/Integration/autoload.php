<?php

/**
 * What the integrations plug into: the real packages where an autoloader of theirs is named (INTEGRATION_AUTOLOAD) or
 * Debian's Symfony is installed, or, class by class, the double of whatever is not there.
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
