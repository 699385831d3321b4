--TEST--
Attributes: get, all, set, remove, take, putIfAbsent, compareAndSet, patch
--EXTENSIONS--
mcp_state
--FILE--
<?php
require __DIR__ . '/native.inc';

$s = memory_session();
show('absent', fn () => $s->get('a'));
show('all of nothing', fn () => $s->all());
show('set', fn () => $s->set('a.b', '{"z":1,"y":[1.0,"é"]}'));
show('get', fn () => $s->get('a.b'));
show('parent', fn () => $s->get('a'));
show('child', fn () => $s->get('a.b.y'));
$s->set('a.b.z', '2');
show('edited in place', fn () => $s->get('a.b'));
show('put', fn () => $s->putIfAbsent('a.b', '1'));
show('put', fn () => $s->putIfAbsent('n', '1'));
$s->set('null', 'null');
show('put over null', fn () => $s->putIfAbsent('null', '5'));
show('take', fn () => $s->take('null'));
show('take', fn () => $s->take('null'));
show('compare, other', fn () => $s->compareAndSet('n', '2', '3'));
show('compare, same', fn () => $s->compareAndSet('n', ' 1 ', '3'));
show('compare, order', fn () => $s->compareAndSet('a.b', '{"y":[1.0,"\u00e9"],"z":2}', '{}'));
show('compare, absent', fn () => $s->compareAndSet('m', null, '1'));
show('compare, to nothing', fn () => $s->compareAndSet('m', '1', null));
show('patch', fn () => $s->patch([['n', null], ['x', '[]'], ['x', '{"k":1}'], ['x.l', '2']]));
show('all', fn () => $s->all());
show('remove', fn () => $s->remove('x'));
show('remove', fn () => $s->remove('x'));
?>
--EXPECT--
absent: null
all of nothing: "{}"
set: null
get: "{\"z\":1,\"y\":[1.0,\"\u00e9\"]}"
parent: "{\"b\":{\"z\":1,\"y\":[1.0,\"\u00e9\"]}}"
child: "[1.0,\"\u00e9\"]"
edited in place: "{\"z\":2,\"y\":[1.0,\"\u00e9\"]}"
put: false
put: true
put over null: true
take: "5"
take: null
compare, other: false
compare, same: true
compare, order: true
compare, absent: true
compare, to nothing: true
patch: null
all: "{\"a\":{\"b\":{}},\"x\":{\"k\":1,\"l\":2}}"
remove: true
remove: false
