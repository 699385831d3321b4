<?php

/**
 * An MCP server over Streamable HTTP: every POST is served by whatever PHP process is free, and all of them share the
 * session. Where the session lives is the only thing MCP_STATE_MODE changes.
 *
 *   MCP_STATE_MODE   mcp-state (default), blob, or blob-lock
 *   MCP_STATE_DSN    where mcp-state keeps the sessions; the ini setting mcp_state.dsn when it is not set
 *   MCP_STATE_BLOBS  the directory of the blobs
 *   MCP_SESSION_TTL  seconds a session may be idle (3600)
 *   MCP_DUPLICATES   what becomes of a second request with an id that is in flight: isolate (default) or reject
 *   MCP_KEEPALIVE    seconds between the comments on a stream that waits (15)
 */

declare(strict_types=1);

use McpState\Example\HttpServer;
use McpState\Example\Tools;

require __DIR__ . '/../autoload.php';

HttpServer::fromEnvironment(new Tools())->serve();
