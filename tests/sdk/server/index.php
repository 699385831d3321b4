<?php

/**
 * The scenarios' tools on the official PHP SDK (`mcp/sdk`), unmodified, with its own sessions or with ours.
 *
 *     MCP_SDK_AUTOLOAD       the autoloader of an installation of mcp/sdk
 *     MCP_SDK_SESSIONS       `mcp-state`, or `file` for the SDK's own file store
 *     MCP_SDK_TRANSPORT      `own` for the SDK's transport, or `ours`
 *     MCP_STATE_KEEP_ALIVE_MS  how often ours writes a comment, milliseconds
 *     MCP_STATE_BLOBS        where the file store keeps its files
 *     MCP_STATE_REJECT       1: with our middleware, which refuses a second request with an id in flight
 *     MCP_STATE_DELAYS       SEED:MAX_US, random delays around everything that the SDK asks of our sessions
 *     MCP_STATE_MAX_WAITING  how many questions may be open at once
 *
 * Headers of a request that only tests send: X-Test-Ttl-Ms opens a session that lives so long, X-Test-Principal says who
 * calls. Headers of a reply: X-Worker-Pid, and in X-Test-Log the last thing that the session manager logged.
 */

declare(strict_types=1);

use Http\Discovery\Psr17FactoryDiscovery;
use Mcp\Server\Session\FileSessionStore;
use Mcp\Server\Session\SessionInterface;
use Mcp\Server\Session\SessionManagerInterface;
use Mcp\Server\Transport\StreamableHttpTransport;
use McpState\Sdk\SessionManager;
use McpState\Tests\Delayed;
use McpState\Tests\Delays;
use Psr\Log\AbstractLogger;

require __DIR__ . '/../../../php/autoload.php';
require getenv('MCP_SDK_AUTOLOAD') ?: throw new RuntimeException('MCP_SDK_AUTOLOAD names no autoloader.');

require __DIR__ . '/../../scenarios/server/Delays.php';
require __DIR__ . '/../../scenarios/server/Delayed.php';

header('X-Worker-Pid: ' . getmypid());

$logger = new class extends AbstractLogger {
    public function log($level, $message, array $context = []): void
    {
        if (!headers_sent()) {
            header('X-Test-Log: ' . substr((string) preg_replace('/[^\x20-\x7e]+/', ' ', (string) $message), 0, 200));
        }

        error_log("[$level] $message");
    }
};

/** Since 0.10 the class is Mcp\Server\Server. */
$builder = (class_exists('Mcp\Server\Server') ? 'Mcp\Server\Server' : 'Mcp\Server')::builder();
$sessions = null;

if (getenv('MCP_SDK_SESSIONS') === 'file') {
    $builder->setSession(new FileSessionStore(getenv('MCP_STATE_BLOBS') ?: sys_get_temp_dir() . '/mcp-sdk-sessions'));
} else {
    $sessions = SessionManager::open(
        ttl: isset($_SERVER['HTTP_X_TEST_TTL_MS']) ? (int) $_SERVER['HTTP_X_TEST_TTL_MS'] : null,
        logger: $logger,
        principal: $_SERVER['HTTP_X_TEST_PRINCIPAL'] ?? null,
        maxWaiting: ((int) getenv('MCP_STATE_MAX_WAITING')) ?: null,
    );
    $delays = Delays::fromEnvironment(uniqid((string) getmypid()));
    // Nothing may come between exists() and createWithId().
    $builder->setSession(sessionManager: $delays === null ? $sessions : Delayed::behind(
        $sessions,
        SessionManagerInterface::class,
        $delays,
        [SessionInterface::class],
        ['createWithId', 'gc', 'getId'],
    ));
}

$server = (require __DIR__ . '/tools.php')($builder)->build();

$body = Psr17FactoryDiscovery::findStreamFactory()->createStream((string) file_get_contents('php://input'));
$body->rewind();
$url = 'http://' . $_SERVER['HTTP_HOST'] . $_SERVER['REQUEST_URI'];
$request = Psr17FactoryDiscovery::findServerRequestFactory()
    ->createServerRequest($_SERVER['REQUEST_METHOD'], $url, $_SERVER)
    ->withBody($body);

foreach (getallheaders() as $name => $value) {
    $request = $request->withHeader($name, $value);
}

$middleware = getenv('MCP_STATE_REJECT') && $sessions !== null ? [
    new McpState\Sdk\Middleware\PrincipalGuard($sessions, static fn (): ?string => $_SERVER['HTTP_X_TEST_PRINCIPAL'] ?? null),
    new McpState\Sdk\Middleware\RejectDuplicateRequests($sessions),
] : [];
$transport = getenv('MCP_SDK_TRANSPORT') === 'ours' && $sessions !== null
    ? new McpState\Sdk\StreamableHttpTransport(
        $sessions,
        $request,
        ((int) getenv('MCP_STATE_KEEP_ALIVE_MS')) ?: 15_000,
        middleware: $middleware,
    )
    : new StreamableHttpTransport($request, middleware: $middleware);

try {
    $response = $server->run($transport);
} catch (McpState\Exception\ExceptionInterface $e) {
    http_response_code(503);
    header('Retry-After: 1');
    error_log((string) $e);

    return;
}

http_response_code($response->getStatusCode());

foreach ($response->getHeaders() as $name => $values) {
    foreach ($values as $value) {
        header("$name: $value", false);
    }
}

echo $response->getBody();
