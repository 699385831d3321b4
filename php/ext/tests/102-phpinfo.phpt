--TEST--
phpinfo() shows the version, the store and its counters
--EXTENSIONS--
mcp_state
--INI--
mcp_state.dsn=memory://
--FILE--
<?php
require __DIR__ . '/native.inc';

function block(): string
{
    ob_start();
    phpinfo(INFO_MODULES);
    preg_match('/^mcp_state\n.*?(?=^\w+\n\n|\z)/ms', ob_get_clean(), $match);

    return $match[0] ?? 'no block';
}

$before = block();
var_dump(str_contains($before, McpState\Native\VERSION), str_contains($before, 'mcp_state.max_store_bytes'));
$s = McpState\Native\Engine::open()->createSession();
$s->deliverResponse(1, '{}');
$after = block();
var_dump(str_contains($after, 'memory://'), (bool) preg_match('/sessions? .*=> .*1/i', $after), $after !== $before);
?>
--EXPECT--
bool(true)
bool(true)
bool(true)
bool(true)
bool(true)
