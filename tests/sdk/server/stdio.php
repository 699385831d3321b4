<?php

/** The scenarios' tools on the official PHP SDK (MCP_SDK_AUTOLOAD) over stdin and stdout, with our sessions. */

declare(strict_types=1);

use Mcp\Server\Transport\StdioTransport;
use McpState\Sdk\Scope\Stdio;
use McpState\Sdk\SessionManager;

require __DIR__ . '/../../../php/autoload.php';
require getenv('MCP_SDK_AUTOLOAD') ?: throw new RuntimeException('MCP_SDK_AUTOLOAD names no autoloader.');

$builder = (class_exists('Mcp\Server\Server') ? 'Mcp\Server\Server' : 'Mcp\Server')::builder()
    ->setSession(sessionManager: SessionManager::open('memory://', scope: new Stdio()));
(require __DIR__ . '/tools.php')($builder)->build()->run(new StdioTransport());
