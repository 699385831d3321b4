<?php

/**
 * The example server with what tests need to look inside and to make trouble:
 *
 * - the headers X-Worker-Pid and X-Test-Log (what was logged before the reply, or "-") on every reply;
 * - sessions that live for as many milliseconds as the request header X-Test-Ttl-Ms says;
 * - MCP_STATE_DELAYS=SEED:MAX_US, random delays before and after every operation on the store;
 * - the tools `crash` and `stats`, and `publish`, `listen` and `once` for what a store has beside sessions.
 */

declare(strict_types=1);

use McpState\Example\Call;
use McpState\Example\HttpServer;
use McpState\Example\Json;
use McpState\Example\State\Sessions;
use McpState\Example\State\SessionState;
use McpState\Example\Tool;
use McpState\Example\Tools;
use McpState\Store;
use McpState\Tests\Delayed;
use McpState\Tests\Delays;

require __DIR__ . '/../../../examples/server/autoload.php';
require __DIR__ . '/Delays.php';
require __DIR__ . '/Delayed.php';

$tools = new Tools();
$tools->add(new Tool(
    'crash',
    'Ends the request, after a question that nobody waits for any more.',
    ['kind' => ['type' => 'string', 'enum' => ['exit', 'fatal', 'kill']], 'sentinel' => ['type' => 'string']],
    static function (array $arguments, Call $call): string {
        $call->session->ask([
            'jsonrpc' => '2.0',
            'method' => 'elicitation/create',
            'params' => ['message' => $arguments['sentinel'], 'requestedSchema' => ['type' => 'object']],
        ], 60_000);
        header('Content-Type: text/event-stream');
        foreach ($call->session->take() as $message) {
            echo "data: $message\n\n";
        }
        flush();
        match ($arguments['kind']) {
            'exit' => exit(1),
            'fatal' => str_repeat('x', 1 << 40),
            'kill' => posix_kill(getmypid(), SIGKILL),
        };

        return 'still alive';
    },
    streams: true,
));
$tools->add(new Tool(
    'stats',
    'What the store counts: of this session, and in all.',
    [],
    static fn (array $arguments, Call $call): string => Json::encode([
        'session' => Store::open()->openSession($call->session->id())?->stats(),
        'store' => Store::open()->stats(),
    ]),
));
$tools->add(new Tool(
    'publish',
    'Puts a message on the bus; returns its number.',
    ['topic' => ['type' => 'string'], 'message' => ['type' => 'string']],
    static fn (array $arguments): string => (string) Store::open()->publish($arguments['topic'], $arguments['message']),
));
$tools->add(new Tool(
    'listen',
    'Waits for messages of the bus after a cursor; a negative cursor is where the topic ends.',
    [
        'topic' => ['type' => 'string'],
        'cursor' => ['type' => 'integer'],
        'wait_ms' => ['type' => 'integer', 'minimum' => 0, 'default' => 0],
    ],
    static function (array $arguments): string {
        ['topic' => $topic, 'cursor' => $cursor, 'wait_ms' => $waitMs] = $arguments;
        $store = Store::open();
        $cursor = $cursor < 0 ? $store->cursor($topic) : $cursor;
        if ($waitMs > 0) {
            $store->waitSince($topic, $cursor, $waitMs);
        }

        return Json::encode($store->since($topic, $cursor));
    },
));
$tools->add(new Tool(
    'once',
    'Uses a key that can be used once.',
    ['key' => ['type' => 'string'], 'ttl_ms' => ['type' => 'integer', 'minimum' => 1]],
    static fn (array $arguments): string
        => Store::open()->consumeOnce($arguments['key'], $arguments['ttl_ms']) ? 'first' : 'used',
));

header('X-Worker-Pid: ' . getmypid());
header('X-Test-Log: -');
if (isset($_SERVER['HTTP_X_TEST_TTL_MS'])) {
    putenv('MCP_SESSION_TTL=' . (int) $_SERVER['HTTP_X_TEST_TTL_MS'] / 1000);
}
$delays = Delays::fromEnvironment((string) file_get_contents('php://input'));

HttpServer::fromEnvironment(
    $tools,
    decorate: static fn (Sessions $sessions): Sessions => $delays === null
        ? $sessions
        : Delayed::behind($sessions, Sessions::class, $delays, [SessionState::class], ['id']),
    log: static function (string $text): void {
        error_log($text);
        if (!headers_sent()) {
            header('X-Test-Log: ' . strtok($text, "\r\n"));
        }
    },
)->serve();
