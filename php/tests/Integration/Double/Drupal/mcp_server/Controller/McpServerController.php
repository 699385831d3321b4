<?php

declare(strict_types=1);

namespace Drupal\mcp_server\Controller;

use Drupal\Core\DependencyInjection\ContainerInjectionInterface;
use Drupal\Core\Lock\LockBackendInterface;
use Mcp\Server;
use Symfony\Component\DependencyInjection\ContainerInterface;

/** Double of mcp_server's controller, which takes a lock for each session. */
final class McpServerController implements ContainerInjectionInterface
{
    public function __construct(public readonly Server $server, public readonly LockBackendInterface $lock)
    {
    }

    public static function create(ContainerInterface $container): self
    {
        $lock = $container->get($container->has(LockBackendInterface::class) ? LockBackendInterface::class : 'lock');

        return new self($container->get('mcp_server.server'), $lock);
    }
}
