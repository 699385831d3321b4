--TEST--
Arguments can be named; PHP reports a wrong number or type; only arguments that the stubs declare nullable can be null
--EXTENSIONS--
mcp_state
--FILE--
<?php
require __DIR__ . '/native.inc';

use McpState\Native\Engine;

$s = Engine::open(dsn: 'memory://')->createSession(ttlMs: 60_000, principal: 'alice');
$o = $s->attach(kind: 1, leaseMs: 5_000);
$s->enqueueOutgoing(message: '{}', owner: $o);
var_dump(count($s->takeOutgoing($o, max: 1)), $s->wait(owner: $o, interest: 7, after: 0, waitMs: 0)[0]);
var_dump($s->compareAndSet('k', null, '1'), $s->compareAndSet(json: null, expected: '1', key: 'k'), $s->get('k'));

foreach (
    [
        'too few' => fn () => $s->compareAndSet('k'),
        'too many' => fn () => $s->get('k', 'l'),
        'unknown name' => fn () => $s->get(name: 'k'),
        'null key' => fn () => $s->get(null),
        'null message' => fn () => $s->enqueueBroadcast(null),
        'null context' => fn () => $s->enqueueBroadcast('{}', null),
        'number for a string' => fn () => $s->get(1),
        'float id' => fn () => $s->cancelRequest(1.0),
        'false for a number' => fn () => $s->attach(false),
    ] as $what => $do
) {
    try {
        $do();
        echo "$what: went through\n";
    } catch (Error $error) {
        echo $what, ': ', $error::class, "\n";
    }
}
?>
--EXPECT--
int(1)
int(2)
bool(true)
bool(true)
NULL
too few: ArgumentCountError
too many: ArgumentCountError
unknown name: Error
null key: TypeError
null message: TypeError
null context: TypeError
number for a string: TypeError
float id: TypeError
false for a number: TypeError
