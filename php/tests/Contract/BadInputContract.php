<?php

declare(strict_types=1);

namespace McpState\Tests\Contract;

use McpState\Exception\ExceptionInterface;
use McpState\Exception\InvalidArgument;
use McpState\Exception\InvalidDsn;
use McpState\Owner;
use McpState\Store;

/** Bad input causes a typed error and changes nothing. */
trait BadInputContract
{
    /** @dataProvider badInput */
    public function testBadInputIsRefused(\Closure $do): void
    {
        $store = $this->createStore();
        $owner = $store->createSession()->attach();

        $e = self::assertThrows(InvalidArgument::class, static fn () => $do($owner, $store));
        self::assertNotSame('', $e->getMessage());
        self::assertSame([], $owner->session->all());
        self::assertSame([], $owner->session->allPending());
        self::assertSame([], $owner->takeOutgoing());
    }

    /** @return iterable<string, array{\Closure(Owner, Store): mixed}> */
    public static function badInput(): iterable
    {
        $ids = [
            'empty' => '',
            'with a space' => 'a b',
            'with a newline' => "a\n",
            'with a NUL' => "a\0",
            'not ASCII' => "caf\u{e9}",
            'of 256 bytes' => \str_repeat('x', 256),
            'of 10 kB' => \str_repeat('x', 10_240),
        ];

        foreach ($ids as $name => $id) {
            yield "create, id $name" => [static fn (Owner $o, Store $s) => $s->createSession($id)];
            yield "open, id $name" => [static fn (Owner $o, Store $s) => $s->openSession($id)];
            yield "destroy, id $name" => [static fn (Owner $o, Store $s) => $s->destroySession($id)];
        }

        foreach ([-1, \PHP_INT_MIN] as $ms) {
            yield "TTL of $ms" => [static fn (Owner $o, Store $s) => $s->createSession(ttlMs: $ms)];
            yield "lease of $ms" => [static fn (Owner $o) => $o->session->attach(leaseMs: $ms)];
            yield "timeout of $ms, register" => [static fn (Owner $o) => $o->registerPending(1, $ms)];
            yield "timeout of $ms, send" => [static fn (Owner $o) => $o->sendRequest(['method' => 'm'], $ms)];
            yield "wait of $ms" => [static fn (Owner $o) => $o->wait($ms)];
            yield "wait after $ms" => [static fn (Owner $o) => $o->wait(1, $ms)];
            yield "wait of $ms, bus" => [static fn (Owner $o, Store $s) => $s->waitSince('t', 0, $ms)];
            yield "once for $ms" => [static fn (Owner $o, Store $s) => $s->consumeOnce('k', $ms)];
            yield "take $ms" => [static fn (Owner $o) => $o->takeOutgoing($ms)];
            yield "peek $ms" => [static fn (Owner $o) => $o->peekOutgoing($ms)];
            yield "acknowledge $ms" => [static fn (Owner $o) => $o->acknowledge($ms)];
            yield "collect $ms" => [static fn (Owner $o, Store $s) => $s->collect($ms)];
            yield "since $ms" => [static fn (Owner $o, Store $s) => $s->since('t', $ms)];
            yield "since, $ms at most" => [static fn (Owner $o, Store $s) => $s->since('t', 0, $ms)];
        }

        foreach (['empty' => '', 'not UTF-8' => "\"\xff\""] as $name => $text) {
            yield "message $name" => [static fn (Owner $o) => $o->enqueueOutgoing($text)];
            yield "broadcast $name" => [static fn (Owner $o) => $o->session->enqueueBroadcast($text)];
            yield "request $name" => [static fn (Owner $o) => $o->sendRequest($text)];
            yield "answer $name" => [static fn (Owner $o) => $o->session->deliverResponse(1, $text)];
        }

        yield 'context not UTF-8' => [static fn (Owner $o) => $o->enqueueOutgoing('{}', "\xff")];
        yield 'message not encodable' => [static fn (Owner $o) => $o->enqueueOutgoing(['a' => "\xff"])];
        yield 'request not JSON' => [static fn (Owner $o) => $o->sendRequest('{"method":')];
        yield 'request no object' => [static fn (Owner $o) => $o->sendRequest('[1]')];
        yield 'request an empty array' => [static fn (Owner $o) => $o->sendRequest([])];
        yield 'request with an id' => [static fn (Owner $o) => $o->sendRequest(['id' => 7, 'method' => 'm'])];
        yield 'method not UTF-8' => [static fn (Owner $o) => $o->registerPending(1, 1000, "\xff")];
        yield 'rpc id not UTF-8' => [static fn (Owner $o) => $o->beginRequest("\xff")];
        yield 'rpc id very long' => [static fn (Owner $o) => $o->beginRequest(\str_repeat('x', 100_000))];
        yield 'token malformed' => [static fn (Owner $o) => $o->session->owner('nonsense')->takeOutgoing()];
        yield 'token empty' => [static fn (Owner $o) => $o->session->owner('')->takeOutgoing()];
        yield 'topic empty' => [static fn (Owner $o, Store $s) => $s->publish('', 'm')];
        yield 'topic not UTF-8' => [static fn (Owner $o, Store $s) => $s->publish("\xff", 'm')];
        yield 'bus message not UTF-8' => [static fn (Owner $o, Store $s) => $s->publish('t', "\xff")];
        yield 'once, key empty' => [static fn (Owner $o, Store $s) => $s->consumeOnce('', 1)];
        yield 'principal of 10 kB' => [
            static fn (Owner $o, Store $s) => $s->createSession(principal: \str_repeat('x', 10_240)),
        ];
    }

    public function testABadIdInAMessageIsShortened(): void
    {
        $store = $this->createStore();
        $e = self::assertThrows(
            InvalidArgument::class,
            static fn () => $store->openSession(\str_repeat('x', 10_000)),
        );

        self::assertLessThan(500, \strlen($e->getMessage()));
    }

    /** @dataProvider badDsns */
    public function testABadDsnIsRefusedByName(string $dsn, string $part): void
    {
        $e = self::assertThrows(InvalidDsn::class, static fn () => Store::open($dsn));

        self::assertStringContainsString($part, $e->getMessage());
    }

    /** @return iterable<string, array{string, string}> */
    public static function badDsns(): iterable
    {
        yield 'no scheme' => ['mcp', 'no scheme'];
        yield 'unknown scheme' => ['mysql://x', 'mysql'];
        yield 'no name' => ['shm://', 'shm://NAME'];
        yield 'a path for a name' => ['shm://../x', 'shm://NAME'];
        yield 'a relative directory' => ['file://x', 'file:///DIRECTORY'];
        yield 'unknown option' => ['memory://?max_mesage_bytes=1', 'max_mesage_bytes'];
        yield 'negative time' => ['memory://?ttl_ms=-1', 'ttl_ms'];
        yield 'not a number' => ['memory://?max_owners=many', 'max_owners'];
        yield 'unknown policy' => ['memory://?on_full=maybe', 'on_full'];
    }

    public function testNoInputCrashesPhp(): void
    {
        $owner = $this->createOwner();
        $session = $owner->session;
        $strings = ['', '0', "\0", "\xff\xfe", '{', 'null', '[[[', \str_repeat('[', 100_000), \str_repeat('a.', 200)];
        $integers = [\PHP_INT_MIN, -1, 0, 1, \PHP_INT_MAX];
        $calls = 0;

        foreach ($strings as $string) {
            foreach ($integers as $integer) {
                foreach (
                    [
                        static fn () => $session->get($string),
                        static fn () => $session->set($string, $string),
                        static fn () => $session->owner($string)->claimAny(),
                        static fn () => $session->deliverResponse($integer, $string),
                        static fn () => $session->cancelRequest($string),
                        static fn () => $session->cancelRequest($integer),
                        static fn () => $owner->enqueueOutgoing($string, $string),
                        static fn () => $owner->takeOutgoing($integer),
                        static fn () => $owner->acknowledge($integer),
                        static fn () => $owner->sendRequest($string, $integer, $string),
                        static fn () => $owner->registerPending($integer, $integer, $string),
                        static fn () => $owner->pendingRequest($integer)->claim(),
                        static fn () => $owner->pendingRequest($integer)->cancel(),
                        static fn () => $owner->beginRequest($string),
                        static fn () => $owner->finishRequest($integer),
                        static fn () => $owner->wait(0, $integer),
                    ] as $call
                ) {
                    try {
                        $call();
                    } catch (ExceptionInterface) {
                        // The store refuses the input with a typed error. Any other exception fails the test.
                    }

                    ++$calls;
                }
            }
        }

        self::assertSame(9 * 5 * 16, $calls);
        self::assertTrue($session->touch());
    }

    public function testAnErrorShowsEightCharactersOfWhatOnlyItsHolderMayKnow(): void
    {
        $secret = '936da01f-9abd-4d9d-80c7-02af85c822a8';
        $store = $this->createStore();
        $session = $store->createSession();
        $calls = [
            'session id' => static fn (string $bad) => $store->openSession($bad),
            'session id to make' => static fn (string $bad) => $store->createSession($bad),
            'owner token' => static fn (string $bad) => $session->owner($bad)->takeOutgoing(),
            'principal' => static fn (string $bad) => $store->openSession('x', $bad . \str_repeat('x', 10_240)),
            'principal to bind' => static fn (string $bad) => $store->createSession(null, null, $bad . \str_repeat('x', 10_240)),
        ];
        $wrong = ["$secret\x01", "\xff$secret", $secret . 'é', \str_replace('-', ' ', $secret), $secret . \str_repeat('x', 300)];

        foreach ($calls as $what => $call) {
            foreach ($wrong as $bad) {
                $message = self::assertThrows(ExceptionInterface::class, static fn () => $call($bad))->getMessage();
                self::assertStringContainsString('936da01', $message, $what);
                self::assertDoesNotMatchRegularExpression('/936da01f.?9/', $message, "$what: more than eight characters");
            }
        }

        $message = self::assertThrows(ExceptionInterface::class, static fn () => $store->consumeOnce("$secret\xff", 1_000));
        self::assertDoesNotMatchRegularExpression('/936da01f-/', $message->getMessage());
    }

    public function testThePasswordOfADsnIsNeverShown(): void
    {
        $settings = ['zend.exception_ignore_args' => '0', 'zend.exception_string_param_max_len' => '100'];
        $before = \array_map(\ini_set(...), \array_keys($settings), $settings);
        $dsns = ['redis://user:secret@127.0.0.1:1?retry_ms=1', 'redis://user:secret@h:x', 'redis:user:secret@h'];

        try {
            foreach ($dsns as $dsn) {
                $e = self::assertThrows(ExceptionInterface::class, static fn () => Store::open($dsn)->createSession());
                // PHP itself shows the arguments in the trace; code can prevent that only since 8.2.
                $text = \PHP_VERSION_ID < 80_200 ? $e->getMessage() : (string) $e;
                self::assertStringNotContainsString('secret', $text);
            }
        } finally {
            \array_map(\ini_set(...), \array_keys($settings), $before);
        }
    }
}
