<?php

/**
 * The scenarios' tools on the double of the SDK (php/tests/Sdk/Double), for tests without the SDK.
 *
 *     MCP_DOUBLE_GENERATION  `08` or `09`
 *     MCP_SDK_SESSIONS       `mcp-state`, or `file` for one JSON file for each session
 *     MCP_STATE_BLOBS        where these are
 *
 * Headers as in ../server/index.php.
 */

declare(strict_types=1);

use McpState\Exception\ExceptionInterface;
use McpState\Sdk\SessionManager;
use McpState\Tests\Sdk\Double\BlobSessions;
use McpState\Tests\Sdk\Double\Server08;
use McpState\Tests\Sdk\Double\Server09;
use McpState\Tests\Sdk\Double\Tools;
use Psr\Log\AbstractLogger;

require __DIR__ . '/autoload.php';

header('X-Worker-Pid: ' . getmypid());

$logger = new class extends AbstractLogger {
    public function log($level, $message, array $context = [])
    {
        if (!headers_sent()) {
            header('X-Test-Log: ' . substr((string) preg_replace('/[^\x20-\x7e]+/', ' ', (string) $message), 0, 200));
        }

        error_log("[$level] $message");
    }
};
$sessions = getenv('MCP_SDK_SESSIONS') === 'file'
    ? new BlobSessions((string) getenv('MCP_STATE_BLOBS'))
    : SessionManager::open(
        ttl: isset($_SERVER['HTTP_X_TEST_TTL_MS']) ? (int) $_SERVER['HTTP_X_TEST_TTL_MS'] : null,
        logger: $logger,
    );
$class = getenv('MCP_DOUBLE_GENERATION') === '08' ? Server08::class : Server09::class;
$server = new $class($sessions, Tools::all());
$sessionId = $_SERVER['HTTP_MCP_SESSION_ID'] ?? null;

try {
    $reply = $_SERVER['REQUEST_METHOD'] === 'DELETE'
        ? $server->delete((string) $sessionId)
        : $server->post((string) file_get_contents('php://input'), $sessionId);
} catch (ExceptionInterface $e) {
    error_log((string) $e);
    http_response_code(503);

    return;
}

http_response_code($reply->status);

if ($reply->sessionId !== null) {
    header("Mcp-Session-Id: $reply->sessionId");
}

if ($reply->stream === null) {
    header('Content-Type: application/json');
    echo $reply->body;

    return;
}

header('Content-Type: text/event-stream');
header('X-Accel-Buffering: no');
($reply->stream)(static function (string $message): void {
    echo "event: message\ndata: $message\n\n";
    @ob_flush();
    flush();
});
