<?php

/**
 * The example server with the sessions of one of the peers. MCP_STATE_MODE is mcp-state, blob, blob-lock, or plain for
 * {@see PlainSession}. MCP_STATE_BLOBS is the directory of the peers that use files.
 *
 * The set-up and the loading of classes are the same for all peers.
 */

declare(strict_types=1);

use McpState\Bench\Server\PlainSessions;
use McpState\Example\HttpServer;
use McpState\Example\State\BlobSessions;
use McpState\Example\State\McpStateSessions;
use McpState\Example\State\Sessions;
use McpState\Example\Tools;
use McpState\Store;

require __DIR__ . '/../../php/autoload.php';

spl_autoload_register(static function (string $class): void {
    require str_starts_with($class, 'McpState\\Bench\\Server\\')
        ? __DIR__ . '/' . substr($class, 22) . '.php'
        : dirname(__DIR__, 2) . '/examples/server/src/' . strtr(substr($class, 17), '\\', '/') . '.php';
});

const TTL_MS = 3_600_000;

$sessions = static function (): Sessions {
    $blobs = (string) getenv('MCP_STATE_BLOBS');
    $mode = getenv('MCP_STATE_MODE');

    return match ($mode) {
        'mcp-state' => new McpStateSessions(Store::open(), TTL_MS),
        'plain' => new PlainSessions($blobs),
        'blob' => new BlobSessions($blobs, TTL_MS, locked: false),
        'blob-lock' => new BlobSessions($blobs, TTL_MS, locked: true),
        default => throw new DomainException("MCP_STATE_MODE is mcp-state, plain, blob or blob-lock, not \"$mode\"."),
    };
};
(new HttpServer(new Tools(), $sessions, error_log(...), rejectDuplicates: false, keepAliveMs: 15_000))->serve();
