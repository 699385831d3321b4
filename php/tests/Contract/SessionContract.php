<?php

declare(strict_types=1);

namespace McpState\Tests\Contract;

use McpState\Exception\SessionExists;
use McpState\Exception\SessionNotFound;
use McpState\Session;

/** Sessions: created once, found by id, ended for good. */
trait SessionContract
{
    public function testASessionIsFoundByItsId(): void
    {
        $store = $this->createStore();
        $session = $store->createSession();

        self::assertMatchesRegularExpression('/^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/', $session->id);
        self::assertSame($session->id, $store->openSession($session->id)?->id);
        self::assertNotSame($session->id, $store->createSession()->id);
    }

    public function testAnIdOfAnyVisibleAsciiCanBeChosen(): void
    {
        $store = $this->createStore();
        $id = \implode('', \range('!', '~')) . \bin2hex(\random_bytes(50));

        self::assertNull($store->openSession($id));
        self::assertSame($id, $store->createSession($id)->id);
        self::assertNotNull($store->openSession($id));
    }

    public function testAnIdIsTakenOnce(): void
    {
        $store = $this->createStore();
        $first = $store->createSession();
        $first->set('mine', true);

        $e = self::assertThrows(SessionExists::class, static fn () => $store->createSession($first->id));
        self::assertStringContainsString(\substr($first->id, 0, 8), $e->getMessage());
        self::assertStringNotContainsString($first->id, $e->getMessage(), 'the id is a secret');
        self::assertTrue($first->get('mine'));
    }

    public function testG7DestroyedIsFinalAlsoWhenTheIdIsTakenAgain(): void
    {
        $store = $this->createStore();
        $session = $store->createSession();
        $owner = $session->attach();
        $session->set('of', 'the first');

        self::assertTrue($session->destroy());
        self::assertNull($store->openSession($session->id));
        self::assertFalse($session->destroy());
        self::assertFalse($session->touch());
        $second = $store->createSession($session->id);

        foreach (self::operations() as $name => $operation) {
            self::assertThrows(SessionNotFound::class, static fn () => $operation($session, $owner));
            self::assertSame([], $second->all(), $name);
        }

        self::assertFalse($session->touch());
        self::assertFalse($session->destroy());
        self::assertTrue($second->touch());
        self::assertFalse($second->has('of'));
    }

    /** @return array<string, \Closure> all operations, none of which may restore an ended session */
    private static function operations(): array
    {
        return [
            'attach' => static fn (Session $s, $o) => $s->attach(),
            'get' => static fn (Session $s, $o) => $s->get('k'),
            'has' => static fn (Session $s, $o) => $s->has('k'),
            'all' => static fn (Session $s, $o) => $s->all(),
            'set' => static fn (Session $s, $o) => $s->set('k', 1),
            'remove' => static fn (Session $s, $o) => $s->remove('k'),
            'take' => static fn (Session $s, $o) => $s->take('k'),
            'putIfAbsent' => static fn (Session $s, $o) => $s->putIfAbsent('k', 1),
            'patch' => static fn (Session $s, $o) => $s->patch(['k' => 1]),
            'compareAndSet' => static fn (Session $s, $o) => $s->compareAndSet('k', null, 1),
            'update' => static fn (Session $s, $o) => $s->update('k', static fn () => 1),
            'stats' => static fn (Session $s, $o) => $s->stats(),
            'nextRequestId' => static fn (Session $s, $o) => $s->nextRequestId(),
            'enqueueBroadcast' => static fn (Session $s, $o) => $s->enqueueBroadcast('{}'),
            'deliverResponse' => static fn (Session $s, $o) => $s->deliverResponse(1, '{}'),
            'cancelRequest' => static fn (Session $s, $o) => $s->cancelRequest(1),
            'allPending' => static fn (Session $s, $o) => $s->allPending(),
            'enqueueOutgoing' => static fn (Session $s, $o) => $o->enqueueOutgoing('{}'),
            'takeOutgoing' => static fn (Session $s, $o) => $o->takeOutgoing(),
            'peekOutgoing' => static fn (Session $s, $o) => $o->peekOutgoing(),
            'acknowledge' => static fn (Session $s, $o) => $o->acknowledge(1),
            'sendRequest' => static fn (Session $s, $o) => $o->sendRequest(['method' => 'm']),
            'registerPending' => static fn (Session $s, $o) => $o->registerPending(1),
            'pending' => static fn (Session $s, $o) => $o->pending(),
            'claim' => static fn (Session $s, $o) => $o->pendingRequest(1)->claim(),
            'peek' => static fn (Session $s, $o) => $o->pendingRequest(1)->peek(),
            'cancel' => static fn (Session $s, $o) => $o->pendingRequest(1)->cancel(),
            'await' => static fn (Session $s, $o) => $o->pendingRequest(1)->await(),
            'claimAny' => static fn (Session $s, $o) => $o->claimAny(),
            'resolveTimeouts' => static fn (Session $s, $o) => $o->resolveTimeouts(),
            'beginRequest' => static fn (Session $s, $o) => $o->beginRequest(1),
            'finishRequest' => static fn (Session $s, $o) => $o->finishRequest(1),
            'isCancelled' => static fn (Session $s, $o) => $o->isCancelled(1),
            'renew' => static fn (Session $s, $o) => $o->renew(),
        ];
    }

    public function testDestroySessionSaysWhetherThereWasOne(): void
    {
        $store = $this->createStore();
        $id = $store->createSession()->id;

        self::assertTrue($store->destroySession($id));
        self::assertFalse($store->destroySession($id));
    }

    public function testG12ASessionOfAPrincipalIsNotThereForAnyOther(): void
    {
        $store = $this->createStore();
        $id = $store->createSession(principal: 'alice')->id;

        self::assertNull($store->openSession($id));
        self::assertNull($store->openSession($id, 'bob'));
        self::assertFalse($store->destroySession($id));
        self::assertFalse($store->destroySession($id, 'bob'));
        self::assertThrows(SessionExists::class, static fn () => $store->createSession($id, principal: 'bob'));

        $mine = $store->openSession($id, 'alice');
        self::assertNotNull($mine);
        $mine->set('k', 1);
        self::assertTrue($store->destroySession($id, 'alice'));
        self::assertFalse($mine->touch());
    }

    /** For other principals, a session looks the same as one that never existed or was destroyed. */
    public function testG12ASessionOfAnotherAndOneThatNeverWasAreAnsweredAlike(): void
    {
        $store = $this->createStore();
        $answer = static function (\Closure $do): array {
            try {
                return [$do()];
            } catch (\Throwable $e) {
                return [$e::class, $e->getCode(), $e->getMessage()];
            }
        };
        $hers = $store->createSession(principal: 'alice')->id;
        $never = \bin2hex(\random_bytes(18));

        foreach ([null, '', 'bob', 'alice ', 'Alice'] as $principal) {
            foreach (['openSession', 'destroySession'] as $operation) {
                self::assertSame(
                    $answer(static fn () => $store->$operation($never, $principal)),
                    $answer(static fn () => $store->$operation($hers, $principal)),
                    $operation . ' of ' . \var_export($principal, true),
                );
            }
        }

        // These objects are older: one session was destroyed, and the id of the other now belongs to another principal.
        foreach (self::operations() as $name => $operation) {
            $id = \bin2hex(\random_bytes(4)) . '-the-same-beginning';
            $stale = [];

            foreach (["$id-destroyed", "$id-anothers"] as $session) {
                $owner = $store->createSession($session, principal: 'alice')->attach();
                $store->destroySession($session, 'alice');
                $stale[] = static fn () => $operation($owner->session, $owner);
            }

            $store->createSession("$id-anothers", principal: 'bob');
            [$destroyed, $anothers] = \array_map($answer, $stale);
            self::assertSame($destroyed, $anothers, $name);
            self::assertSame(SessionNotFound::class, $destroyed[0], $name);
        }

        self::assertNotNull($store->openSession($hers, 'alice'));
    }

    public function testAnIdleSessionExpires(): void
    {
        $store = $this->createStore();
        $session = $store->createSession(ttlMs: 20);

        \usleep(60_000);
        self::assertNull($store->openSession($session->id));
        self::assertFalse($session->touch());
        self::assertThrows(SessionNotFound::class, static fn () => $session->get('k'));
    }

    public function testTheStoresTtlIsTheDefault(): void
    {
        $store = $this->createStore('ttl_ms=20');
        $short = $store->createSession();
        $long = $store->createSession(ttlMs: 60_000);

        \usleep(60_000);
        self::assertNull($store->openSession($short->id));
        self::assertNotNull($store->openSession($long->id));
    }

    public function testASessionInUseDoesNotExpire(): void
    {
        $session = $this->createStore()->createSession(ttlMs: 300);

        for ($i = 0; $i < 20; ++$i) {
            \usleep(30_000);
            self::assertTrue($session->touch());
        }
    }

    public function testASessionDoesNotExpireWhileAnOwnerLives(): void
    {
        $store = $this->createStore();
        $session = $store->createSession(ttlMs: 20);
        $owner = $session->attach();

        \usleep(60_000);
        self::assertNotNull($store->openSession($session->id));
        $owner->enqueueOutgoing('{}');
        $owner->detach();

        \usleep(60_000);
        self::assertNull($store->openSession($session->id));
    }

    public function testG11ExpiredSessionsAreCollectedBitByBit(): void
    {
        $store = $this->createStore('lease_ms=29999', fresh: true);

        // Other tests of this process may have left expired sessions in the store.
        while ($store->collect()->more) {
            continue;
        }

        for ($i = 0; $i < 5; ++$i) {
            $store->createSession(ttlMs: 500)->set('k', $i);
        }

        $alive = $store->createSession();
        \usleep(510_000);

        $first = $store->collect(3);
        self::assertSame([3, true], [$first->sessions, $first->more]);
        $rest = $store->collect(3);
        self::assertSame([2, false], [$rest->sessions, $rest->more]);
        self::assertSame(0, $store->collect()->sessions);
        self::assertTrue($alive->touch());
    }

    public function testASessionSaysWhatItHolds(): void
    {
        $session = $this->createSession();
        $owner = $session->attach();
        $owner->enqueueOutgoing('{}');
        $owner->registerPending(7);
        $owner->beginRequest(1);
        $session->enqueueBroadcast('{}');
        $session->set('k', 'v');
        $session->deliverResponse(123456, '{}');
        $stats = $session->stats();

        self::assertSame($session->id, $stats['id']);

        foreach (['owners', 'exchanges', 'pending', 'in_flight', 'queued', 'broadcasts'] as $one) {
            self::assertSame(1, $stats[$one], $one);
        }

        self::assertGreaterThan(0, $stats['message_bytes']);
        self::assertGreaterThan(0, $stats['attribute_bytes']);
        self::assertSame(3_600_000, $stats['ttl_ms']);
        self::assertSame(['unknown' => 1], \array_filter($stats['late']));
    }

    public function testAStoreSaysWhatItHoldsAndCounts(): void
    {
        $store = $this->createStore('max_owners=255', fresh: true);
        $before = $store->stats();
        $session = $store->createSession();
        $session->deliverResponse(123456, '{}');
        // The message is larger than a page, because the store counts used pages.
        $session->enqueueBroadcast('"' . \str_repeat('x', 8_000) . '"');
        $after = $store->stats();

        self::assertSame($before['sessions'] + 1, $after['sessions']);
        self::assertSame(255, $after['limits']['max_owners']);
        self::assertGreaterThan($before['used_bytes'], $after['used_bytes']);
        self::assertLessThanOrEqual($after['limit_bytes'], $after['used_bytes']);
        self::assertSame($before['counters']['late_unknown'] + 1, $after['counters']['late_unknown']);
        self::assertSame($before['counters']['sessions_created'] + 1, $after['counters']['sessions_created']);
        self::assertNotSame([], $after['place']);
    }

    public function testTheDsnTellsWhichStoreThisIs(): void
    {
        self::assertStringStartsWith(\explode('?', static::dsn())[0], $this->createStore()->dsn());
    }
}
