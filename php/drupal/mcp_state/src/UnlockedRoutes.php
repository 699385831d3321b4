<?php

declare(strict_types=1);

namespace Drupal\mcp_state;

use Drupal\Core\Routing\RouteSubscriberBase;
use Symfony\Component\Routing\RouteCollection;

/** Sends the routes of mcp_server's controller to {@see UnlockedController}. */
final class UnlockedRoutes extends RouteSubscriberBase
{
    public const CONTROLLER = 'mcp_state.mcp_server_controller';

    /** @param array{controller?: string} $wiring the services that {@see McpStateServiceProvider} found */
    public function __construct(private readonly array $wiring)
    {
    }

    protected function alterRoutes(RouteCollection $collection): void
    {
        $controller = $this->wiring['controller'] ?? '';

        if ($controller === '') {
            return;
        }

        foreach ($collection as $route) {
            [$class, $method] = \explode('::', (string) $route->getDefault('_controller') . '::');

            if (\ltrim($class, '\\') === $controller) {
                $route->setDefault('_controller', self::CONTROLLER . ":$method");
            }
        }
    }
}
