<?php

declare(strict_types=1);

namespace Drupal\mcp_server;

use Mcp\Server;
use Mcp\Server\Protocol;
use Mcp\Server\Session\SessionManagerInterface;

/** Double of mcp_server's factory, which builds a server with the module's own session store. */
final class McpServerFactory
{
    public function __construct(private readonly SessionManagerInterface $own)
    {
    }

    public function create(): Server
    {
        return new Server(new Protocol(['tools/call', 'ping'], $this->own), 'Drupal MCP Server');
    }
}
