<?php

declare(strict_types=1);

namespace McpState\Symfony\DependencyInjection;

use Symfony\Component\DependencyInjection\Compiler\CompilerPassInterface;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\DependencyInjection\Exception\LogicException;
use Symfony\Component\DependencyInjection\Reference;

/**
 * Builds the server of symfony/mcp-bundle with the session manager of this library in place of the SDK's session store
 * and lock. That lock would serve the requests of a session one after another.
 *
 * The arguments are named, so that the container does not compile with an SDK whose `setSession()` accepts no manager.
 */
final class UseSessionManagerPass implements CompilerPassInterface
{
    /** The service id under which symfony/mcp-bundle defines `Mcp\Server\Builder`. */
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
                'mcp_state.notification_bus needs Builder::setNotificationBus(); upgrade mcp/sdk, or set the '
                . 'option to false'
            );
        }

        $builder
            ->removeMethodCall('setNotificationBus')
            ->addMethodCall('setNotificationBus', [new Reference(McpStateExtension::BUS)]);
    }
}
