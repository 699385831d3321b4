<?php

declare(strict_types=1);

namespace McpState\Symfony\DependencyInjection;

use Symfony\Component\Config\Definition\Builder\TreeBuilder;
use Symfony\Component\Config\Definition\ConfigurationInterface;

/** The configuration keys under `mcp_state:`. */
final class Configuration implements ConfigurationInterface
{
    public function getConfigTreeBuilder(): TreeBuilder
    {
        $tree = new TreeBuilder('mcp_state');
        $root = $tree->getRootNode();
        \assert($root instanceof \Symfony\Component\Config\Definition\Builder\ArrayNodeDefinition);

        $root
            ->children()
                ->scalarNode('dsn')
                    ->info('The store, such as shm://shop. Null: MCP_STATE_DSN, or else the ini setting mcp_state.dsn.')
                    ->defaultNull()
                ->end()
                ->integerNode('ttl')
                    ->info("Milliseconds that a session lives without being used. Null: the store's ttl_ms.")
                    ->min(1)
                    ->defaultNull()
                ->end()
                ->integerNode('lease')
                    ->info("Milliseconds that a silent request whose process died is kept. Null: the store's lease_ms.")
                    ->min(1)
                    ->defaultNull()
                ->end()
                ->integerNode('max_waiting')
                    ->info("Requests that may wait at once; fewer than PHP processes. Null: the store's max_waiting.")
                    ->min(1)
                    ->defaultNull()
                ->end()
                ->booleanNode('blocking')
                    ->info('Whether a stream that waits for the client sleeps until the response, or polls.')
                    ->defaultTrue()
                ->end()
                ->booleanNode('bind_user')
                    ->info('Whether a session belongs to the signed-in user who created it.')
                    ->defaultTrue()
                ->end()
                ->scalarNode('scope')
                    ->info('The id of a service that implements McpState\Sdk\Scope\Scope, for runtimes such as Swoole.')
                    ->defaultNull()
                ->end()
                ->arrayNode('collections')
                    ->info('Session keys whose elements are added and removed one by one.')
                    ->scalarPrototype()->end()
                ->end()
                ->booleanNode('notification_bus')
                    ->info('Whether notifications reach the subscriptions/listen streams of all processes.')
                    ->defaultFalse()
                ->end()
            ->end();

        return $tree;
    }
}
