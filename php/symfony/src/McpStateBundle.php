<?php

declare(strict_types=1);

namespace McpState\Symfony;

use McpState\Symfony\DependencyInjection\UseSessionManagerPass;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\HttpKernel\Bundle\Bundle;

/**
 * Gives the server of symfony/mcp-bundle the sessions of mcp-state:
 *
 *     // config/bundles.php
 *     McpState\Symfony\McpStateBundle::class => ['all' => true],
 *
 *     # config/packages/mcp_state.yaml
 *     mcp_state:
 *         dsn: 'shm://shop'
 *
 * The bundle registers these services under their class names: {@see \McpState\Store},
 * {@see \McpState\Sdk\SessionManager} and {@see \McpState\Sdk\NotificationBus}.
 */
final class McpStateBundle extends Bundle
{
    public function build(ContainerBuilder $container): void
    {
        $container->addCompilerPass(new UseSessionManagerPass());
    }
}
