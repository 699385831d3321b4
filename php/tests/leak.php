<?php

/**
 * Tests whether calls leak memory: php leak.php [--rounds=N]
 *
 * A round calls every method of the extension's classes, ends its session and drops its handles. The memory of the
 * process must level off: the second half of the rounds may add only a fraction of a byte per call. The script needs
 * /proc.
 */

declare(strict_types=1);

use McpState\Native\Engine;
use McpState\Native\Failure;
use McpState\Native\Session;

$rounds = (int) (getopt('', ['rounds:'])['rounds'] ?? 20_000);
$called = [];

$engine = Engine::open('memory://?max_topic_messages=16&max_once_keys=1000');
$call = static function (object $object, string $method, mixed ...$arguments) use (&$called): mixed {
    $called[$object::class][$method] = ($called[$object::class][$method] ?? 0) + 1;

    return $object->$method(...$arguments);
};

$round = static function () use ($engine, $call): void {
    $session = $call($engine, 'createSession', null, null, 'principal');
    $id = $call($session, 'id');
    $call($engine, 'openSession', $id, 'principal');
    $owner = $call($session, 'attach', 1, null);
    $other = $call($session, 'attach', 2, 1000);
    $call($session, 'set', 'a.b', '{"c":[1,2,3]}');
    $call($session, 'get', 'a.b.c');
    $call($session, 'putIfAbsent', 'd', '1');
    $call($session, 'compareAndSet', 'd', '1', '2');
    $call($session, 'patch', [['e.f', '"x"'], ['d', null]]);
    $call($session, 'all');
    $call($session, 'take', 'e');
    $call($session, 'remove', 'a');
    $call($session, 'enqueueOutgoing', $owner, '"m"', 'context');
    $call($session, 'enqueueBroadcast', '"b"', '');
    $call($session, 'peekOutgoing', $owner, 10);
    $call($session, 'acknowledge', $owner, 1);
    $call($session, 'takeOutgoing', $owner, 10);
    $call($session, 'registerPending', $owner, $call($session, 'nextRequestId'), 0, 'm');
    $request = $call($session, 'sendRequest', $owner, '{"method":"m"}', 1000, '');
    $second = $call($session, 'sendRequest', $owner, '{"method":"m"}', 1000, '');
    $call($session, 'deliverResponse', $request, '{"ok":true}');
    $call($session, 'deliverResponse', 0, '{}');
    $call($session, 'wait', $owner, 7, 0, 0);
    $call($session, 'pending', $owner);
    $call($session, 'allPending');
    $call($session, 'peekResponse', $owner, $request);
    $call($session, 'claim', $owner, $request);
    $call($session, 'resolveTimeouts', $owner);
    $call($session, 'cancelPending', $owner, $second);
    $call($session, 'claimAny', $owner);
    $call($session, 'beginRequest', $owner, 'x', 1);
    $call($session, 'isCancelled', $owner, 'x');
    $call($session, 'cancelRequest', 'x');
    $call($session, 'finishRequest', $owner, 'x');
    $call($session, 'renew', $owner);
    $call($session, 'touch');
    $call($session, 'stats');
    $call($session, 'detach', $other);
    $call($engine, 'dsn');
    $call($engine, 'stats');
    $call($engine, 'publish', 'topic', '"m"');
    $call($engine, 'cursor', 'topic');
    $call($engine, 'since', 'topic', 0, 100);
    $call($engine, 'waitSince', 'topic', 0, 0);
    $call($engine, 'consumeOnce', 'key' . \mt_rand(0, 500), 1);
    $call($engine, 'collect', 10);
    $call($session, 'destroy');

    // PHP also frees the results of failed calls.
    try {
        $call($session, 'set', 'a', '1');
    } catch (Failure) {
    }
};

$resident = static function (): int {
    \gc_collect_cycles();
    \preg_match('/^VmRSS:\s+(\d+) kB$/m', (string) \file_get_contents('/proc/self/status'), $found);

    return (int) $found[1];
};

for ($n = 0; $n < $rounds; ++$n) {
    $round();

    if ($n === \intdiv($rounds, 2)) {
        $half = $resident();
    }
}

$grown = $resident() - $half;
$methods = $calls = 0;

foreach ([Engine::class, Session::class] as $class) {
    foreach ((new ReflectionClass($class))->getMethods(ReflectionMethod::IS_PUBLIC) as $method) {
        if ($method->isStatic() || $method->isConstructor()) {
            continue;
        }

        if (!isset($called[$class][$method->name])) {
            \fwrite(STDERR, "leak.php: no round calls $class::{$method->name}\n");
            exit(1);
        }

        ++$methods;
        $calls += $called[$class][$method->name];
    }
}

echo "leak.php: $calls calls of $methods methods; the second half added $grown kB to $half kB\n";
exit($grown * 1024 > $calls / 4 + (256 << 10) ? 1 : 0);
