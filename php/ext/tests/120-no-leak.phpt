--TEST--
PHP frees sessions, owners, results and failures completely
--EXTENSIONS--
mcp_state
--FILE--
<?php
require __DIR__ . '/native.inc';

use McpState\Native\Engine;

function round_of_everything(): void
{
    $e = Engine::open('memory://');
    $s = $e->createSession();
    $o = $s->attach(1);
    $s->set('a.b', '{"c":[1,2]}');
    $s->patch([['x', '1'], ['y', null]]);
    [$s->get('a.b'), $s->all(), $s->take('x'), $s->stats(), $e->stats(), $e->openSession($s->id()), $e->dsn()];
    $s->enqueueOutgoing($o, '{}', 'context');
    $s->enqueueBroadcast('{}');
    [$s->peekOutgoing($o), $s->takeOutgoing($o)];
    $id = $s->sendRequest($o, '{"method":"ask"}', 1000);
    $s->deliverResponse($id, '{"answer":1}');
    [$s->pending($o), $s->peekResponse($o, $id), $s->wait($o, 7, 0, 0), $s->claim($o, $id), $s->takeOutgoing($o)];
    [$s->beginRequest($o, 'id'), $s->finishRequest($o, 'id')];
    [$e->publish('t', '{}'), $e->since('t', 0, 3)];

    $wrong = [
        fn () => $s->claim('nonsense', 1),
        fn () => $s->get("\xff"),
        fn () => $s->get([]),
        fn () => $s->patch([['k']]),
        fn () => Engine::open('nowhere://'),
        fn () => new Engine(),
        fn () => clone $s,
    ];

    foreach ($wrong as $do) {
        try {
            $do();
            echo "went through\n";
        } catch (Throwable) {
        }
    }

    $s->detach($o);
    $s->destroy();
}

for ($i = 0; $i < 10; ++$i) {
    round_of_everything();
}

$before = memory_get_usage();

for ($i = 0; $i < 1000; ++$i) {
    round_of_everything();
}

var_dump(memory_get_usage() - $before, McpState\Native\Engine::open('memory://')->stats()['sessions']);
?>
--EXPECT--
int(0)
int(0)
