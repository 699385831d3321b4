<?php

/**
 * The example server, which MCP_STATE_MODE=plain gives sessions of a careful manager in plain PHP. What it keeps is under
 * MCP_STATE_BLOBS.
 */

declare(strict_types=1);

use McpState\Bench\Server\PlainSessions;
use McpState\Example\HttpServer;
use McpState\Example\Tools;

require __DIR__ . '/../../examples/server/autoload.php';
require __DIR__ . '/PlainSession.php';
require __DIR__ . '/PlainSessions.php';

$server = getenv('MCP_STATE_MODE') !== 'plain' ? HttpServer::fromEnvironment(new Tools()) : new HttpServer(
    new Tools(),
    static fn (): PlainSessions => new PlainSessions((string) getenv('MCP_STATE_BLOBS')),
    error_log(...),
    rejectDuplicates: false,
    keepAliveMs: 15_000,
);
$server->serve();
