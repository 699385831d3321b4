--TEST--
A result that exceeds the memory limit ends the request, but neither ends the process nor damages the store
--EXTENSIONS--
mcp_state
--FILE--
<?php
require __DIR__ . '/native.inc';

$server = Server::start(<<<'PHP'
    use McpState\Native\Engine;

    $engine = Engine::open('memory://');
    $session = $engine->openSession('s') ?? $engine->createSession('s');

    if ($_SERVER['REQUEST_URI'] === '/look') {
        echo getmypid(), ' ', $session->stats()['owners'], ' ', strlen((string) $session->get('big'));
        return;
    }

    $session->attach(1);
    $session->set('big', json_encode(str_repeat('x', 900_000)));
    ini_set('memory_limit', '8M');
    $values = [];

    for (;;) {
        $values[] = $session->get('big');
    }
    PHP);

[$pid] = explode(' ', $server->get('/look'));
echo preg_match('/Allowed memory size of \d+ bytes exhausted/', $server->get('/fill')), "\n";
[$same, $owners, $length] = explode(' ', $server->get('/look'));
var_dump($same === $pid, (int) $owners, (int) $length);
?>
--EXPECT--
1
bool(true)
int(0)
int(900002)
