<?php

/**
 * An MCP server over Streamable HTTP. Any free PHP process serves a POST, and all processes share the session.
 * MCP_STATE_MODE changes where the session is stored, and nothing else.
 *
 *   MCP_STATE_MODE   mcp-state (default), blob, or blob-lock
 *   MCP_STATE_DSN    the store of mcp-state; without it the ini setting mcp_state.dsn
 *   MCP_STATE_BLOBS  the directory of the blobs
 *   MCP_SESSION_TTL  seconds a session may be idle (3600)
 *   MCP_DUPLICATES   the policy for a second request with an id that is in flight: isolate (default) or reject
 *   MCP_KEEPALIVE    seconds between the comments on a waiting stream (15)
 */

declare(strict_types=1);

use McpState\Example\HttpServer;
use McpState\Example\Tools;

require __DIR__ . '/../autoload.php';

HttpServer::fromEnvironment(new Tools())->serve();
