--TEST--
No list of settings, no stack trace and no message shows the password of a DSN
--EXTENSIONS--
mcp_state
--INI--
mcp_state.dsn="redis://user:secret@127.0.0.1:1?retry_ms=1&group=<b>"
zend.exception_ignore_args=0
zend.exception_string_param_max_len=100
--FILE--
<?php
require __DIR__ . '/native.inc';

use McpState\Native\Engine;
use McpState\Native\Failure;

function says(string $what, string $text): void
{
    echo $what, ': ', str_contains($text, 'secret') ? "the password\n" : "no password\n";
}

function info(): string
{
    ob_start();
    phpinfo(INFO_MODULES);

    return ob_get_clean();
}

says('phpinfo()', info());
echo implode("\n", preg_grep('/^(mcp_state\.dsn|default store) /', explode("\n", info()))), "\n";

foreach ([null, 'redis://user:secret@127.0.0.1:1?retry_ms=1', 'redis://user:secret@h:x', 'redis:user:secret@h', 'redis://u:1?secret@h', 'redis://h password=secret'] as $dsn) {
    try {
        Engine::open($dsn)->createSession();
        echo "created\n";
    } catch (Failure $failure) {
        says('message', $failure->getMessage());
        says('trace', PHP_VERSION_ID < 80200 ? '' : $failure . print_r($failure->getTrace(), true));
    }
}

// The text is escaped if the response is HTML.
$server = Server::start('phpinfo(INFO_MODULES);');
$page = $server->get('/');
says('page', $page);
var_dump(str_contains($page, 'redis://user:…@127.0.0.1:1?retry_ms=1&amp;group=&lt;b&gt;'), str_contains($page, '<b>'));
?>
--EXPECT--
phpinfo(): no password
default store => redis://user:…@127.0.0.1:1?retry_ms=1&group=<b>
mcp_state.dsn => redis://user:…@127.0.0.1:1?retry_ms=1&group=<b> => redis://user:…@127.0.0.1:1?retry_ms=1&group=<b>
message: no password
trace: no password
message: no password
trace: no password
message: no password
trace: no password
message: no password
trace: no password
message: no password
trace: no password
message: no password
trace: no password
page: no password
bool(true)
bool(false)
