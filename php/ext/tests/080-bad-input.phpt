--TEST--
Bad input is refused with a typed failure; PHP never crashes
--EXTENSIONS--
mcp_state
--FILE--
<?php
require __DIR__ . '/native.inc';

use McpState\Native\Engine;
use McpState\Native\Failure;

$e = Engine::open('memory://');
$s = $e->createSession();
$o = $s->attach(1);

show('id with a space', fn () => $e->createSession('a b'));
show('id of 10 kB', fn () => $e->openSession(str_repeat('x', 10240)));
show('empty id', fn () => $e->createSession(''));
show('negative TTL', fn () => $e->createSession(null, -1));
show('unknown kind of owner', fn () => $s->attach(9));
show('negative timeout', fn () => $s->registerPending($o, 1, -1));
show('empty message', fn () => $s->enqueueOutgoing($o, ''));
show('message not UTF-8', fn () => $s->enqueueOutgoing($o, "\xff"));
show('value not JSON', fn () => $s->set('k', '{"half":'));
show('value not UTF-8', fn () => $s->set('k', "\"\xff\""));
show('value empty', fn () => $s->set('k', ''));
show('bad key', fn () => $s->get('a..b'));
show('request no object', fn () => $s->sendRequest($o, '[]', 1000));
show('request with an id', fn () => $s->sendRequest($o, '{"id":1}', 1000));
show('no token', fn () => $s->takeOutgoing('nonsense'));
show('token with NUL', fn () => $s->takeOutgoing(str_repeat("\0", 32)));
show('unknown interest', fn () => $s->wait($o, 64, 0, 1));
show('no interest', fn () => $s->wait($o, 0, 0, 1));
show('unknown policy', fn () => $s->beginRequest($o, 1, 9));
show('patch of nonsense', fn () => $s->patch([['k', 'no json']]));
show('message too long', fn () => memory_session('max_message_bytes=10')->enqueueBroadcast('"0123456789"'));
show('dsn', fn () => Engine::open('memory://?no_such_option=1'));

// For a wrong type, PHP throws its own error, with and without strict types.
foreach (
    [
        fn () => $s->get([]),
        fn () => $s->set('k', null),
        fn () => $s->patch('k'),
        fn () => $s->patch([1]),
        fn () => $s->patch([['k']]),
        fn () => $s->patch([[1, 2]]),
        fn () => $s->patch([['k', []]]),
        fn () => $s->patch([[['k'], null]]),
        fn () => $s->beginRequest($o, 1.5),
        fn () => $s->beginRequest($o, null),
        fn () => $s->claim($o, 'seven'),
        fn () => $s->takeOutgoing(),
    ] as $i => $do
) {
    try {
        $do();
        echo "$i went through\n";
    } catch (TypeError | ArgumentCountError | Failure) {
    }
}

// Every method receives every kind of odd value, and must return or throw.
$odd = [null, true, -1, 0, PHP_INT_MIN, PHP_INT_MAX, 1.5, NAN, '', "\0", "\xff", str_repeat('[', 200_000), [], [[]],
    [['a', 'b', 'c']], new stdClass(), $s, STDIN, fn () => 1];
$calls = 0;

foreach ([$e, $s] as $object) {
    foreach ((new ReflectionClass($object))->getMethods() as $method) {
        if ($method->name === 'destroy') {
            continue;
        }

        foreach ($odd as $value) {
            for ($count = 0; $count <= 4; ++$count) {
                $arguments = array_fill(0, $count, $value);

                foreach ([$arguments, array_replace([$o, 7], $arguments), [$o, ...$arguments]] as $list) {
                    try {
                        $method->invoke($object, ...$list);
                    } catch (Throwable) {
                    }

                    ++$calls;
                }
            }
        }
    }
}

var_dump($calls > 5000, $s->touch());
?>
--EXPECT--
id with a space: INVALID_ARGUMENT
id of 10 kB: INVALID_ARGUMENT
empty id: INVALID_ARGUMENT
negative TTL: INVALID_ARGUMENT
unknown kind of owner: INVALID_ARGUMENT
negative timeout: INVALID_ARGUMENT
empty message: INVALID_ARGUMENT
message not UTF-8: INVALID_ARGUMENT
value not JSON: INVALID_ARGUMENT
value not UTF-8: INVALID_ARGUMENT
value empty: INVALID_ARGUMENT
bad key: INVALID_ARGUMENT
request no object: INVALID_ARGUMENT
request with an id: INVALID_ARGUMENT
no token: INVALID_ARGUMENT
token with NUL: INVALID_ARGUMENT
unknown interest: INVALID_ARGUMENT
no interest: INVALID_ARGUMENT
unknown policy: INVALID_ARGUMENT
patch of nonsense: INVALID_ARGUMENT
message too long: LIMIT_EXCEEDED max_message_bytes 10 12
dsn: INVALID_DSN
bool(true)
bool(true)
