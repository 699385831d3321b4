--TEST--
Sessions: create, open, touch, destroy, principals, expiry, collect
--EXTENSIONS--
mcp_state
--FILE--
<?php
require __DIR__ . '/native.inc';

use McpState\Native\Engine;

$engine = Engine::open('memory://');
show('create', fn () => $engine->createSession('s')->id());
show('taken', fn () => $engine->createSession('s'));
show('open', fn () => $engine->openSession('s')->id());
show('unknown', fn () => $engine->openSession('t'));
$session = $engine->openSession('s');
show('touch', fn () => $session->touch());
show('destroy', fn () => $session->destroy());
show('again', fn () => $session->destroy());
show('touch it', fn () => $session->touch());
show('use it', fn () => $session->get('k'));
show('take its id', fn () => $engine->createSession('s'));
show('still gone', fn () => $session->get('k'));

show('of a principal', fn () => $engine->createSession('p', null, 'alice'));
show('for nobody', fn () => $engine->openSession('p'));
show('for bob', fn () => $engine->openSession('p', 'bob'));
show('for alice', fn () => $engine->openSession('p', 'alice'));

$engine->createSession('e', 1);
usleep(20_000);
show('expired', fn () => $engine->openSession('e'));
show('collected', fn () => $engine->collect(10));
show('nothing left', fn () => $engine->collect());
?>
--EXPECT--
create: "s"
taken: null
open: "s"
unknown: null
touch: true
destroy: true
again: false
touch it: false
use it: SESSION_NOT_FOUND
take its id: McpState\Native\Session
still gone: SESSION_NOT_FOUND
of a principal: McpState\Native\Session
for nobody: null
for bob: null
for alice: McpState\Native\Session
expired: null
collected: {"sessions":1,"owners":0,"more":false}
nothing left: {"sessions":0,"owners":0,"more":false}
