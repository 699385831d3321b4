--TEST--
Outgoing messages and broadcasts: enqueue, take, peek, acknowledge, detach
--EXTENSIONS--
mcp_state
--FILE--
<?php
require __DIR__ . '/native.inc';

use McpState\Native\Session;

$s = memory_session();
$one = $s->attach(Session::OWNER_STREAM);
$two = $s->attach(Session::OWNER_STREAM, 1000);
$reply = $s->attach(Session::OWNER_REPLY);
var_dump(preg_match('/^[0-9a-f]{32}$/', $one), $one !== $two);

$first = $s->enqueueOutgoing($one, '{"n":1}');
var_dump($s->enqueueOutgoing($one, '{"n":2}', 'context') - $first);
show('not another\'s', fn () => $s->takeOutgoing($two));
$messages = $s->peekOutgoing($one, 1);
show('peek', fn () => array_column($messages, 1));
show('acknowledge', fn () => $s->acknowledge($one, $messages[0][0]));
show('take', fn () => array_map(fn ($m) => [$m[1], $m[2]], $s->takeOutgoing($one)));
show('taken', fn () => $s->takeOutgoing($one));

$s->enqueueBroadcast('"b"', 'for any stream');
show('no broadcast for a reply', fn () => $s->takeOutgoing($reply));
show('peeked by one', fn () => array_column($s->peekOutgoing($one), 2));
show('not for two', fn () => $s->peekOutgoing($two));
show('detach', fn () => $s->detach($one));
show('detach', fn () => $s->detach($one));
show('returned', fn () => array_column($s->takeOutgoing($two), 1));
show('the end of one', fn () => $s->enqueueOutgoing($one, '{}'));
show('renew one', fn () => $s->renew($one));
show('renew two', fn () => $s->renew($two));
?>
--EXPECT--
int(1)
bool(true)
int(1)
not another's: []
peek: ["{\"n\":1}"]
acknowledge: 1
take: [["{\"n\":2}","context"]]
taken: []
no broadcast for a reply: []
peeked by one: ["for any stream"]
not for two: []
detach: {"dropped":0,"abandoned":0}
detach: null
returned: ["\"b\""]
the end of one: OWNER_EXPIRED
renew one: OWNER_EXPIRED
renew two: null
