<?php

declare(strict_types=1);

namespace McpState\Symfony\DependencyInjection;

use Mcp\Server\Subscription\NotificationBusInterface;
use McpState\Sdk\NotificationBus;
use McpState\Sdk\Scope\Scope;
use McpState\Sdk\SessionManager;
use McpState\Store;
use McpState\Symfony\Scopes;
use McpState\Symfony\ServiceUnavailable;
use McpState\Symfony\SignedInUser;
use Symfony\Component\DependencyInjection\Argument\ServiceClosureArgument;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\DependencyInjection\ContainerInterface;
use Symfony\Component\DependencyInjection\Definition;
use Symfony\Component\DependencyInjection\Extension\Extension;
use Symfony\Component\DependencyInjection\Reference;

/** Registers the services for the configuration. The container opens the store on first use. */
final class McpStateExtension extends Extension
{
    public const STORE = 'mcp_state.store';
    public const SESSIONS = 'mcp_state.session_manager';
    public const BUS = 'mcp_state.notification_bus';
    public const USES_BUS = 'mcp_state.uses_notification_bus';

    private const SCOPE = 'mcp_state.scope';
    private const USER = 'mcp_state.signed_in_user';

    /** @param array<array-key, mixed> $configs */
    public function load(array $configs, ContainerBuilder $container): void
    {
        $config = $this->processConfiguration(new Configuration(), $configs);

        $container->register(self::STORE, Store::class)
            ->setFactory([Store::class, 'open'])
            ->setArguments([$config['dsn']]);

        if ($config['scope'] === null) {
            $container->register(self::SCOPE, Scope::class)
                ->setFactory([Scopes::class, 'ofEntryPoint'])
                ->setArguments([self::optional('request_stack')]);
        } else {
            $container->setAlias(self::SCOPE, $config['scope']);
        }

        $container->register(self::USER, SignedInUser::class)
            ->setArguments([self::optional('security.token_storage')]);

        $container->register(self::SESSIONS, SessionManager::class)
            ->setArguments([
                '$store' => new ServiceClosureArgument(new Reference(self::STORE)),
                '$ttl' => $config['ttl'],
                '$lease' => $config['lease'],
                '$logger' => self::optional('logger'),
                '$blocking' => $config['blocking'],
                '$scope' => new Reference(self::SCOPE),
                '$principal' => $config['bind_user'] ? self::closure(self::USER, 'identifier') : null,
                '$collections' => $config['collections'],
                '$maxWaiting' => $config['max_waiting'],
            ])
            ->addTag('monolog.logger', ['channel' => 'mcp'])
            ->addTag('kernel.reset', ['method' => 'release']);

        if (\interface_exists(NotificationBusInterface::class)) { // mcp/sdk up to 0.7 has no notification bus.
            $container->register(self::BUS, NotificationBus::class)
                ->setArguments([
                    '$store' => new ServiceClosureArgument(new Reference(self::STORE)),
                    '$logger' => self::optional('logger'),
                ])
                ->addTag('monolog.logger', ['channel' => 'mcp']);
            $container->setAlias(NotificationBus::class, self::BUS);
        }

        $container->register('mcp_state.service_unavailable', ServiceUnavailable::class)
            ->setArguments([new ServiceClosureArgument(
                new Reference(self::SESSIONS, ContainerInterface::IGNORE_ON_UNINITIALIZED_REFERENCE),
            )])
            ->addTag('kernel.event_subscriber');

        $container->setAlias(Store::class, self::STORE);
        $container->setAlias(SessionManager::class, self::SESSIONS);
        $container->setParameter(self::USES_BUS, $config['notification_bus']);
    }

    private static function optional(string $id): Reference
    {
        return new Reference($id, ContainerInterface::NULL_ON_INVALID_REFERENCE);
    }

    private static function closure(string $id, string $method): Definition
    {
        return (new Definition(\Closure::class))
            ->setFactory([\Closure::class, 'fromCallable'])
            ->setArguments([[new Reference($id), $method]]);
    }
}
