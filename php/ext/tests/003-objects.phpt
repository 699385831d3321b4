--TEST--
Only the extension creates engines and sessions, and PHP cannot copy them
--EXTENSIONS--
mcp_state
--FILE--
<?php
require __DIR__ . '/native.inc';

use McpState\Native\Engine;
use McpState\Native\Session;

$session = memory_session();

foreach (
    [
        'new Engine' => fn () => new Engine(),
        'new Session' => fn () => new Session(),
        'clone' => fn () => clone $session,
        'serialize' => fn () => serialize($session),
        'unserialize' => fn () => unserialize('O:23:"McpState\Native\Session":0:{}'),
        'property' => fn () => $session->anything = 1,
    ] as $what => $do
) {
    try {
        $do();
        echo "$what: went through\n";
    } catch (Throwable $e) {
        echo "$what: refused\n";
    }
}

// The process still lives, and the session works.
$session->set('k', '1');
var_dump($session->get('k'));
?>
--EXPECT--
new Engine: refused
new Session: refused
clone: refused
serialize: refused
unserialize: refused
property: refused
string(1) "1"
