<?php

declare(strict_types=1);

namespace McpState\Tests\Integration\Symfony;

use Mcp\Server;
use Mcp\Server\Builder;
use McpState\Symfony\McpStateBundle;
use Symfony\Component\DependencyInjection\Container;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\DependencyInjection\Dumper\PhpDumper;
use Symfony\Component\DependencyInjection\Reference;
use Symfony\Component\HttpFoundation\RequestStack;

/** An application with this bundle and with services like those of symfony/mcp-bundle. */
final class Application
{
    /**
     * @param array<string, mixed>                   $config  the configuration under `mcp_state:`
     * @param (\Closure(ContainerBuilder): void)|null $prepare changes the application before it is compiled
     */
    public static function container(array $config, ?\Closure $prepare = null): Container
    {
        $container = new ContainerBuilder();
        $container->register('mcp.session.store', \stdClass::class);
        $container->register('mcp.server.builder', Builder::class)
            ->setFactory([Server::class, 'builder'])
            ->addMethodCall('setServerInfo', ['shop'])
            ->addMethodCall('setSession', [new Reference('mcp.session.store')])
            ->setPublic(true);
        $container->register('mcp.server', Server::class)
            ->setFactory([new Reference('mcp.server.builder'), 'build'])
            ->setPublic(true);
        $container->register('request_stack', RequestStack::class)->setPublic(true);
        $container->register('security.token_storage', SignedIn::class)->setPublic(true);
        $container->register('logger', \Psr\Log\NullLogger::class);

        $bundle = new McpStateBundle();
        $extension = $bundle->getContainerExtension() ?? throw new \LogicException('the bundle has no extension');
        $container->registerExtension($extension);
        $container->loadFromExtension('mcp_state', $config);
        $bundle->build($container);
        $prepare === null || $prepare($container);
        $container->addCompilerPass(new Publish());
        $container->compile();

        $class = 'Container' . \bin2hex(\random_bytes(8));
        eval('?>' . (new PhpDumper($container))->dump(['class' => $class]));

        return new $class();
    }
}
