--TEST--
Waiting: ready, deadline, cursor, destroyed, and a signal
--EXTENSIONS--
mcp_state
pcntl
--FILE--
<?php
require __DIR__ . '/native.inc';

use McpState\Native\Engine;
use McpState\Native\Session;

$all = Session::INTEREST_RESOLUTION | Session::INTEREST_MESSAGE | Session::INTEREST_CANCELLATION;
$s = Engine::open('file://' . test_directory(__FILE__) . '?durability=none')->createSession();
$owner = $s->attach(Session::OWNER_STREAM);

var_dump($s->wait($owner, $all, 0, 1)[0] === Session::WAIT_DEADLINE);
$s->enqueueOutgoing($owner, '{}');
[$status, $after] = $s->wait($owner, $all, 0, 1000);
var_dump($status === Session::WAIT_READY);
var_dump($s->wait($owner, Session::INTEREST_RESOLUTION, 0, 1)[0] === Session::WAIT_DEADLINE);
[$status, $after] = $s->wait($owner, $all, $after, 1);
var_dump($status === Session::WAIT_DEADLINE);
$s->enqueueBroadcast('{}');
var_dump($s->wait($owner, $all, $after, 1000)[0] === Session::WAIT_READY);

// A child sends signals until one interrupts a wait, which then returns so that PHP runs the handler.
$s->takeOutgoing($owner);
pcntl_async_signals(true);
$handled = 0;
pcntl_signal(SIGUSR1, function () use (&$handled) { ++$handled; });
$parent = getmypid();
$child = pcntl_fork();

if ($child === 0) {
    do {
        usleep(20_000);
        exec("kill -USR1 $parent", $output, $status);
    } while ($status === 0);
    exit;
}

for ($i = 0; $i < 100; ++$i) {
    if ($s->wait($owner, Session::INTEREST_RESOLUTION, 0, 1000)[0] === Session::WAIT_INTERRUPTED) {
        break;
    }
}

exec("kill -KILL $child");
pcntl_waitpid($child, $status);
var_dump($i < 100, $handled > 0);

$s->destroy();
var_dump($s->wait($owner, $all, 0, 1000)[0] === Session::WAIT_DESTROYED);
?>
--CLEAN--
<?php
require __DIR__ . '/native.inc';
remove_directory(test_directory(str_replace('.clean', '', __FILE__)));
?>
--EXPECT--
bool(true)
bool(true)
bool(true)
bool(true)
bool(true)
bool(true)
bool(true)
bool(true)
