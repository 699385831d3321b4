<?php

declare(strict_types=1);

namespace Drupal\mcp_state;

use Drupal\Core\DependencyInjection\ContainerBuilder;
use Drupal\Core\DependencyInjection\ServiceProviderBase;
use Symfony\Component\DependencyInjection\Reference;

/**
 * Gives the module `mcp_server` our session manager in place of its store and its lock.
 *
 * Its server service is decorated: whatever builds it, what comes out has our manager ({@see ServerWithSessions}), and
 * the session stores below are never asked. Its controller is made with a lock that lets everybody in
 * ({@see UnlockedController}), since the requests of a session no longer have to wait for each other.
 *
 * The parameter `mcp_state.wiring` says what was found, for the status report: `server`, `controller` (a class, or ''),
 * `stores` (service names), `lock` (whether the controller took one).
 */
final class McpStateServiceProvider extends ServiceProviderBase
{
    private const SERVER = 'mcp_server.server';
    private const CONTROLLER = 'Drupal\mcp_server\Controller\McpServerController';

    /** Services of one or another version of mcp_server that keep sessions. */
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

    /** @return array{string, bool} the controller's class where we make it, and whether there is a lock that it no longer takes */
    private function unlock(ContainerBuilder $container): array
    {
        foreach ($container->getDefinitions() as $id => $definition) {
            if (($definition->getClass() ?? $id) === self::CONTROLLER) { // A service: it is told by its arguments.
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
