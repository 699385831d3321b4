--TEST--
The notification bus and consumeOnce
--EXTENSIONS--
mcp_state
--FILE--
<?php
require __DIR__ . '/native.inc';

$e = McpState\Native\Engine::open('memory://?max_topic_messages=3');
show('cursor of nothing', fn () => $e->cursor('t'));
$first = $e->publish('t', 'one');
show('the next number', fn () => $e->publish('t', 'two') - $first);
show('cursor', fn () => $e->cursor('t') - $first);
show('since 0', fn () => array_column($e->since('t', 0)['messages'], 1));
show('at most one', fn () => array_column($e->since('t', 0, 1)['messages'], 1));
show('since one', fn () => array_column($e->since('t', $first)['messages'], 1));
show('another topic', fn () => $e->since('u', 0));
$e->publish('t', 'three');
$e->publish('t', 'four');
show('missed', fn () => $e->since('t', 0)['missed']);
show('wait', fn () => [$e->waitSince('t', 0, 1000), $e->waitSince('t', $first + 3, 1)]);
show('once', fn () => [$e->consumeOnce('k', 60_000), $e->consumeOnce('k', 60_000), $e->consumeOnce('l', 60_000)]);
?>
--EXPECT--
cursor of nothing: 0
the next number: 1
cursor: 1
since 0: ["one","two"]
at most one: ["one"]
since one: ["two"]
another topic: {"messages":[],"cursor":0,"missed":0}
missed: 1
wait: [true,false]
once: [true,false,true]
