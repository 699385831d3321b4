<?php

declare(strict_types=1);

namespace McpState\Tests\Integration\Drupal;

use Drupal\Core\DependencyInjection\ContainerBuilder;
use Drupal\Core\Lock\LockBackendInterface;
use Drupal\Core\Site\Settings;
use Drupal\mcp_server\McpServerFactory;
use Drupal\mcp_state\McpStateServiceProvider;
use Mcp\Server;
use McpState\Sdk\SessionManager;
use Psr\Log\NullLogger;
use Symfony\Component\Config\FileLocator;
use Symfony\Component\DependencyInjection\Loader\YamlFileLoader;
use Symfony\Component\DependencyInjection\Reference;

/** A Drupal site with mcp_state and one of the versions of mcp_server, which differ in their services. */
final class Site
{
    /**
     * @param array<string, mixed>                   $settings `$settings['mcp_state']`
     * @param (\Closure(ContainerBuilder): void)|null $prepare  changes the site before mcp_state alters its services
     */
    public static function container(
        array $settings,
        ?\Closure $prepare = null,
        string $store = 'mcp_server.shared_tempstore_session_store',
    ): ContainerBuilder {
        $container = new ContainerBuilder();
        $container->setParameter('site.path', 'sites/default');
        $container->register('settings', Settings::class)->setArguments([['hash_salt' => 'salt', 'mcp_state' => $settings]]);
        $container->register('current_user', User::class);
        $container->register('logger.channel_base', NullLogger::class)->setAbstract(true);
        $container->register('lock', SiteLock::class);
        $container->setAlias(LockBackendInterface::class, 'lock');

        $container->register($store, SessionManager::class)
            ->setFactory([SessionManager::class, 'open'])
            ->setArguments(['nonsense://']); // Any use of this store fails.
        $container->register('mcp_server.server.factory', McpServerFactory::class)->setArguments([new Reference($store)]);
        $container->register('mcp_server.server', Server::class)
            ->setFactory([new Reference('mcp_server.server.factory'), 'create'])
            ->setShared(false);

        (new YamlFileLoader($container, new FileLocator(__DIR__ . '/../../../drupal/mcp_state')))->load('mcp_state.services.yml');
        $prepare === null || $prepare($container);
        (new McpStateServiceProvider())->alter($container);

        foreach ([...$container->getDefinitions(), ...$container->getAliases()] as $each) {
            $each->setPublic(true); // All services are public in Drupal.
        }

        $container->compile();

        return $container;
    }
}
