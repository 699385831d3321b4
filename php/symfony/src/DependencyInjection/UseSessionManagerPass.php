<?php

declare(strict_types=1);

namespace McpState\Symfony\DependencyInjection;

use Symfony\Component\DependencyInjection\Compiler\CompilerPassInterface;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\DependencyInjection\Exception\LogicException;
use Symfony\Component\DependencyInjection\Reference;

/**
 * The server of symfony/mcp-bundle is built with our session manager in place of its session store, and without a lock of
 * the SDK's, which would only serve the requests of a session one after another.
 *
 * The arguments go by name, so that the container does not compile on an SDK whose `setSession()` takes no manager.
 */
final class UseSessionManagerPass implements CompilerPassInterface
{
    /** The definition of `Mcp\Server\Builder` that symfony/mcp-bundle makes. */
    private const BUILDER = 'mcp.server.builder';

    public function process(ContainerBuilder $container): void
    {
        if (!$container->hasDefinition(self::BUILDER) || !$container->hasDefinition(McpStateExtension::SESSIONS)) {
            return;
        }

        $builder = $container->getDefinition(self::BUILDER);
        $builder
            ->removeMethodCall('setSession')
            ->removeMethodCall('setSessionLock')
            ->addMethodCall('setSession', [
                '$sessionStore' => null,
                '$sessionManager' => new Reference(McpStateExtension::SESSIONS),
            ]);
        $container->log($this, 'The MCP server keeps its sessions in mcp-state.');

        if ($container->getParameter(McpStateExtension::USES_BUS) !== true) {
            return;
        }

        $class = $container->getReflectionClass($builder->getClass());

        if (!$container->hasDefinition(McpStateExtension::BUS) || $class?->hasMethod('setNotificationBus') !== true) {
            throw new LogicException(
                'mcp_state.notification_bus needs an mcp/sdk with Builder::setNotificationBus(); upgrade it, or set the '
                . 'option to false'
            );
        }

        $builder
            ->removeMethodCall('setNotificationBus')
            ->addMethodCall('setNotificationBus', [new Reference(McpStateExtension::BUS)]);
    }
}
