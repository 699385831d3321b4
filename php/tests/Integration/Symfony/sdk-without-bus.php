<?php

/**
 * Runs the application on an SDK without a notification bus, like the SDK up to 0.7, and prints the class of the
 * server's session manager.
 */

declare(strict_types=1);

use McpState\Tests\Integration\Symfony\Application;

require __DIR__ . '/../../bootstrap.php';
require __DIR__ . '/../autoload.php';

// The double must lack its bus: PHP calls all autoloaders in turn, so none of them may find the interface.
$loaders = spl_autoload_functions();
array_map('spl_autoload_unregister', $loaders);
spl_autoload_register(static function (string $class) use ($loaders): void {
    if ($class === 'Mcp\Server\Builder') {
        $builder = (string) file_get_contents(__DIR__ . '/../Double/Mcp/Server/Builder.php');
        eval(str_replace(['<?php', 'NotificationBusInterface $bus'], ['', 'object $bus'], $builder));
    } elseif ($class !== 'Mcp\Server\Subscription\NotificationBusInterface') {
        foreach ($loaders as $load) {
            $load($class);

            if (class_exists($class, false) || interface_exists($class, false)) {
                return;
            }
        }
    }
});

echo get_class(Application::container(['dsn' => 'memory://'])->get('mcp.server.builder')->sessions()), "\n";
