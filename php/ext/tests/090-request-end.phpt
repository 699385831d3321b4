--TEST--
The owners of a PHP request end with it, however it ends, while the process lives on
--EXTENSIONS--
mcp_state
--FILE--
<?php
require __DIR__ . '/native.inc';

// One process serves all of these requests, so that its memory store persists between them.
$server = Server::start(<<<'PHP'
    use McpState\Native\Engine;

    set_time_limit(1);
    $engine = Engine::open('memory://');
    $session = $engine->openSession('s') ?? $engine->createSession('s');
    $how = trim($_SERVER['REQUEST_URI'], '/');

    if ($how === 'look') {
        echo getmypid(), ' ', count($session->allPending());
        return;
    }

    $owner = $session->attach(1);
    $session->enqueueOutgoing($owner, '{}');
    $session->registerPending($owner, $session->nextRequestId(), 60_000);
    echo getmypid(), ' ', count($session->allPending()), ' ';
    flush();

    match ($how) {
        'plain' => null,
        'exit' => exit(1),
        'exception' => throw new Exception('on purpose'),
        'fatal' => no_such_function(),
        'memory' => (function () { ini_set('memory_limit', '32M'); str_repeat('x', 64 << 20); })(),
        'time' => (function () { for (;;); })(),
    };
    PHP);
$pid = explode(' ', $server->get('/look'))[0];

foreach (['plain', 'exit', 'exception', 'fatal', 'memory', 'time'] as $how) {
    [$same, $during] = explode(' ', $server->get("/$how"));
    [$still, $after] = explode(' ', $server->get('/look'));
    echo "$how: $during during, $after after", [$same, $still] === [$pid, $pid] ? '' : ', in another process', "\n";
}
?>
--EXPECT--
plain: 1 during, 0 after
exit: 1 during, 0 after
exception: 1 during, 0 after
fatal: 1 during, 0 after
memory: 1 during, 0 after
time: 1 during, 0 after
