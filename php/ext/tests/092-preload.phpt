--TEST--
Opening a store fails during opcache preload, where PHP may run as another user and has not forked yet
--EXTENSIONS--
mcp_state
opcache
--SKIPIF--
<?php
extension_loaded('Zend OPcache') || die('skip preload needs opcache');
?>
--FILE--
<?php
require __DIR__ . '/native.inc';

$directory = test_directory(__FILE__);
mkdir($directory);
file_put_contents("$directory/preload.php", <<<'PHP'
    <?php
    try {
        McpState\Native\Engine::open('memory://');
        file_put_contents(__DIR__ . '/said', 'opened');
    } catch (McpState\Native\Failure $failure) {
        file_put_contents(__DIR__ . '/said', $failure->getCode() . ' ' . $failure->getMessage());
    }
    PHP);
$user = trim(shell_exec('id -un'));
echo shell_exec(php_command("-d opcache.enable_cli=1 -d opcache.preload=$directory/preload.php -d opcache.preload_user=$user -r "
    . escapeshellarg('echo get_class(McpState\Native\Engine::open("memory://")), "\n";')));
echo file_get_contents("$directory/said"), "\n";
?>
--CLEAN--
<?php
require __DIR__ . '/native.inc';
remove_directory(test_directory(str_replace('.clean', '', __FILE__)));
?>
--EXPECTF--
McpState\Native\Engine
6 %spreload%s
