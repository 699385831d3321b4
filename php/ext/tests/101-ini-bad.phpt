--TEST--
Opening a store reports an invalid limit instead of ignoring it
--EXTENSIONS--
mcp_state
--INI--
mcp_state.max_message_bytes=lots
--FILE--
<?php
try {
    McpState\Native\Engine::open('memory://');
    echo "opened\n";
} catch (McpState\Native\Failure $failure) {
    echo $failure->getMessage(), "\n";
}
?>
--EXPECTF--
%smax_message_bytes%slots%s
