--TEST--
A store that is opened before a fork works in both processes, and the end of the child keeps the parent's owners
--EXTENSIONS--
mcp_state
pcntl
--FILE--
<?php
require __DIR__ . '/native.inc';

use McpState\Native\Engine;

$engine = Engine::open('file://' . test_directory(__FILE__) . '?durability=none');
$session = $engine->createSession();
$owner = $session->attach(1);
$session->registerPending($owner, 1, 60_000);

if (pcntl_fork() === 0) {
    $session->set('from the child', 'true');
    $session->deliverResponse(1, '"answer"');
    $session->attach(1);
    exit;
}

pcntl_wait($status);
var_dump($session->get('from the child'), $session->claim($owner, 1)[1]);
$session->enqueueOutgoing($owner, '{}');
var_dump(count($session->takeOutgoing($owner)));
var_dump(Engine::open('file://' . test_directory(__FILE__) . '?durability=none')->openSession($session->id())->get('from the child'));
?>
--CLEAN--
<?php
require __DIR__ . '/native.inc';
remove_directory(test_directory(str_replace('.clean', '', __FILE__)));
?>
--EXPECT--
string(4) "true"
string(8) ""answer""
int(1)
string(4) "true"
