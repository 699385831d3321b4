--TEST--
Two processes share a store in a directory
--EXTENSIONS--
mcp_state
--FILE--
<?php
require __DIR__ . '/native.inc';

$dsn = 'file://' . test_directory(__FILE__) . '?durability=none';
$engine = McpState\Native\Engine::open($dsn);
$session = $engine->createSession('shared');
$owner = $session->attach(1);
$id = $session->sendRequest($owner, '{"method":"ask"}', 60_000);

$code = '$s = McpState\Native\Engine::open($argv[1])->openSession("shared"); $s->set("k", "[1]");'
    . 'echo $s->deliverResponse((int) $argv[2], "\"from outside\"");';
echo shell_exec(php_command('-r ' . escapeshellarg($code) . ' -- ' . escapeshellarg($dsn) . " $id")), "\n";

show('attribute', fn () => $session->get('k'));
show('answer', fn () => $session->claim($owner, $id)[1]);
show('the DSN', fn () => str_starts_with($engine->dsn(), 'file://'));
?>
--CLEAN--
<?php
require __DIR__ . '/native.inc';
remove_directory(test_directory(str_replace('.clean', '', __FILE__)));
?>
--EXPECT--
0
attribute: "[1]"
answer: "\"from outside\""
the DSN: true
