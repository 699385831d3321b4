--TEST--
mcp_state.dsn names the default store; limits come from the ini, and the options of the DSN override them
--EXTENSIONS--
mcp_state
--INI--
mcp_state.dsn="memory://?max_owners=2"
mcp_state.max_message_bytes=1K
mcp_state.max_pending=1
--FILE--
<?php
require __DIR__ . '/native.inc';

use McpState\Native\Engine;

$s = Engine::open()->createSession();
$o = $s->attach(1);
$s->attach(1);
show('owners of the DSN', fn () => $s->attach(1));
show('message_bytes of the ini', fn () => $s->enqueueOutgoing($o, str_repeat('x', 1025)));
show('fits', fn () => is_int($s->enqueueOutgoing($o, str_repeat('x', 1024))));
$s->registerPending($o, 1, 1000);
show('pending of the ini', fn () => $s->registerPending($o, 2, 1000));

$t = Engine::open('memory://?max_pending=2')->createSession();
$p = $t->attach(1);
$t->registerPending($p, 1, 1000);
show('over the ini', fn () => $t->registerPending($p, 2, 1000) > 0);

// A directory can set the DSN (PERDIR); only the system can set limits.
var_dump(ini_set('mcp_state.dsn', 'memory://'), ini_set('mcp_state.max_owners', '5'));

foreach (ini_get_all('mcp_state') as $name => $setting) {
    echo $name, ' ', $setting['access'], "\n";
}
?>
--EXPECTF--
owners of the DSN: LIMIT_EXCEEDED max_owners 2 3
message_bytes of the ini: LIMIT_EXCEEDED max_message_bytes 1024 1025
fits: true
pending of the ini: LIMIT_EXCEEDED max_pending 1 2
over the ini: true
bool(false)
bool(false)
mcp_state.dsn 6
mcp_state.%s 4
%Amcp_state.max_store_bytes 4
%A
