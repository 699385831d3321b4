<?php

declare(strict_types=1);

namespace Drupal\mcp_state;

use Drupal\Core\DependencyInjection\ContainerBuilder;
use Drupal\Core\DependencyInjection\ServiceProviderBase;
use Symfony\Component\DependencyInjection\Reference;

/**
 * Gives the module `mcp_server` the session manager of this library in place of its session store and its lock.
 *
 * This class decorates the server service, so that every server receives the manager ({@see ServerWithSessions}) and
 * never uses the module's session stores. The controller receives a lock that never blocks ({@see UnlockedController}),
 * because the requests of a session no longer have to wait for each other.
 *
 * The parameter `mcp_state.wiring` records for the status report what this class found: `server`, `controller` (a class
 * or ''), `stores` (service names) and `lock` (whether the controller takes a lock).
 */
final class McpStateServiceProvider extends ServiceProviderBase
{
    private const SERVER = 'mcp_server.server';
    private const CONTROLLER = 'Drupal\mcp_server\Controller\McpServerController';

    /** The services that keep sessions in any version of mcp_server. */
    private const STORES = [
        'mcp_server.database_session_store',
        'mcp_server.db_session_manager',
        'mcp_server.shared_tempstore_session_store',
    ];

    public function alter(ContainerBuilder $container): void
    {
        $wiring = [
            'server' => $container->has(self::SERVER),
            'stores' => \array_values(\array_filter(self::STORES, $container->has(...))),
            'controller' => '',
            'lock' => false,
        ];

        if ($wiring['server']) {
            $server = $container->findDefinition(self::SERVER);
            $container->register('mcp_state.server', $server->getClass())
                ->setFactory([ServerWithSessions::class, 'wrap'])
                ->setArguments([
                    new Reference('mcp_state.server.inner'),
                    new Reference('mcp_state.session_manager'),
                    new Reference('mcp_state.settings'),
                    new Reference('logger.channel.mcp_state'),
                ])
                ->setDecoratedService(self::SERVER)
                ->setShared($server->isShared())
                ->setPublic(true);

            [$wiring['controller'], $wiring['lock']] = $this->unlock($container);
        }

        $container->setParameter('mcp_state.wiring', $wiring);
    }

    /** @return array{string, bool} the class of the controller that this module creates; whether it takes a lock */
    private function unlock(ContainerBuilder $container): array
    {
        foreach ($container->getDefinitions() as $id => $definition) {
            // A controller that is a service receives its lock as an argument.
            if (($definition->getClass() ?? $id) === self::CONTROLLER) {
                $arguments = UnlockedController::withoutLock($definition->getArguments());
                $hasLock = $arguments !== $definition->getArguments();
                $definition->setArguments($arguments);

                return ['', $hasLock];
            }
        }

        if (!\class_exists(self::CONTROLLER) || !UnlockedController::takesLock(self::CONTROLLER)) {
            return ['', false];
        }

        $container->register(UnlockedRoutes::CONTROLLER, self::CONTROLLER)
            ->setFactory([UnlockedController::class, 'create'])
            ->setArguments([self::CONTROLLER, new Reference('service_container'), new Reference('mcp_state.no_lock')])
            ->setPublic(true);

        return [self::CONTROLLER, true];
    }
}
