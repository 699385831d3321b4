<?php

declare(strict_types=1);

namespace McpState\Tests\Integration\Symfony;

use McpState\Sdk\NotificationBus;
use McpState\Sdk\SessionManager;
use McpState\Store;
use Symfony\Component\DependencyInjection\Compiler\CompilerPassInterface;
use Symfony\Component\DependencyInjection\ContainerBuilder;

/** Makes the services public that the tests check. */
final class Publish implements CompilerPassInterface
{
    public function process(ContainerBuilder $container): void
    {
        foreach ([Store::class, SessionManager::class, NotificationBus::class] as $id) {
            if ($container->hasAlias($id)) {
                $container->getAlias($id)->setPublic(true);
            }
        }

        $container->getDefinition('mcp_state.service_unavailable')->setPublic(true);
        $container->setAlias('the_scope', 'mcp_state.scope')->setPublic(true);
        $container->setParameter('reset_tags', $container->getDefinition('mcp_state.session_manager')->getTag('kernel.reset'));
    }
}
