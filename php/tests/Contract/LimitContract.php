<?php

declare(strict_types=1);

namespace McpState\Tests\Contract;

use McpState\Exception\ExceptionInterface;
use McpState\Exception\LimitExceeded;
use McpState\Exception\StoreFull;

/** G10: everything has a limit; exceeding it is a typed error with both numbers; freeing space always works. */
trait LimitContract
{
    public function testG10AMessageHasAGreatestLength(): void
    {
        $owner = $this->createOwner('max_message_bytes=100');
        $fits = '"' . \str_repeat('x', 98) . '"';
        $long = '"' . \str_repeat('x', 99) . '"';
        $request = $owner->registerPending(1);

        foreach (
            [
                static fn () => $owner->enqueueOutgoing($long),
                static fn () => $owner->session->enqueueBroadcast($long),
                static fn () => $owner->session->deliverResponse(1, $long),
            ] as $do
        ) {
            self::assertLimit('max_message_bytes', 100, 101, $do);
        }

        $owner->enqueueOutgoing($fits);
        self::assertBodies([$fits], $owner->takeOutgoing());
        self::assertTrue($owner->session->deliverResponse(1, $fits)->delivered);
        self::assertSame($fits, $request->claim()->payload);
        self::assertThrows(
            LimitExceeded::class,
            static fn () => $owner->sendRequest(['method' => \str_repeat('x', 100)]),
        );
    }

    public function testG10AnOwnersQueueHasAGreatestLength(): void
    {
        $owner = $this->createOwner('max_owner_messages=2');
        $owner->enqueueOutgoing('1');
        $owner->enqueueOutgoing('2');

        self::assertLimit('max_owner_messages', 2, 3, static fn () => $owner->enqueueOutgoing('3'));
        self::assertLimit('max_owner_messages', 2, 3, static fn () => $owner->sendRequest(['method' => 'm']));
        self::assertSame([], $owner->pending());
        self::assertBodies(['1'], $owner->takeOutgoing(1));
        $owner->enqueueOutgoing('3');
        self::assertBodies(['2', '3'], $owner->takeOutgoing());
    }

    public function testG10AnOwnersQueueHasAGreatestSize(): void
    {
        $owner = $this->createOwner('max_owner_bytes=1000');
        $message = '"' . \str_repeat('x', 598) . '"';
        $owner->enqueueOutgoing($message);

        $e = self::assertThrows(LimitExceeded::class, static fn () => $owner->enqueueOutgoing($message));
        self::assertSame(['max_owner_bytes', 1000], [$e->limit, $e->maximum]);
        self::assertGreaterThanOrEqual(1200, $e->actual);
        $owner->takeOutgoing();
        $owner->enqueueOutgoing($message);
        self::assertBodies([$message], $owner->takeOutgoing());
    }

    public function testG10ASessionHasAGreatestNumberOfOwners(): void
    {
        $session = $this->createSession('max_owners=2');
        $one = $session->attach();
        $session->attach();

        self::assertLimit('max_owners', 2, 3, static fn () => $session->attach());
        $one->detach();
        self::assertNull($session->attach()->claimAny());
    }

    public function testG10ASessionHasAGreatestNumberOfPendingRequests(): void
    {
        $owner = $this->createOwner('max_pending=2');
        $one = $owner->sendRequest(['method' => 'm']);
        $owner->registerPending($owner->session->nextRequestId());

        self::assertLimit('max_pending', 2, 3, static fn () => $owner->sendRequest(['method' => 'm']));
        self::assertLimit('max_pending', 2, 3, static fn () => $owner->registerPending(1));
        $owner->session->deliverResponse($one->id, '{}');
        $one->claim();
        self::assertNotNull($owner->sendRequest(['method' => 'm'])->claim()->remainingMs);
    }

    public function testG10ASessionHasAGreatestNumberOfRequestsInFlight(): void
    {
        $owner = $this->createOwner('max_in_flight=2');
        $owner->beginRequest(1);
        $owner->beginRequest('1');

        self::assertLimit('max_in_flight', 2, 3, static fn () => $owner->beginRequest(2));
        $owner->finishRequest(1);
        self::assertTrue($owner->beginRequest(2));
    }

    public function testG10ASessionHasAGreatestNumberOfBroadcasts(): void
    {
        $session = $this->createSession('max_broadcasts=2');
        $session->enqueueBroadcast('1');
        $session->enqueueBroadcast('2');

        self::assertLimit('max_broadcasts', 2, 3, static fn () => $session->enqueueBroadcast('3'));
        self::assertBodies(['1'], $session->attach()->takeOutgoing(1));
        $session->enqueueBroadcast('3');
        self::assertBodies(['2', '3'], $session->attach()->takeOutgoing());
    }

    public function testG10TheAttributesOfASessionHaveAGreatestSize(): void
    {
        $session = $this->createSession('max_attribute_bytes=1000');
        $session->set('a', \str_repeat('x', 600));

        foreach (
            [
                static fn () => $session->set('b', \str_repeat('x', 600)),
                static fn () => $session->putIfAbsent('b', \str_repeat('x', 600)),
                static fn () => $session->compareAndSet('b', null, \str_repeat('x', 600)),
                static fn () => $session->patch(['c' => 1, 'b' => \str_repeat('x', 600)]),
            ] as $do
        ) {
            $e = self::assertThrows(LimitExceeded::class, $do);
            self::assertSame(['max_attribute_bytes', 1000], [$e->limit, $e->maximum]);
            self::assertGreaterThan(1000, $e->actual);
        }

        self::assertSame(['a'], \array_keys($session->all()));
        $session->set('a', 'short');
        $session->set('b', \str_repeat('x', 600));
        self::assertTrue($session->remove('b'));
    }

    public function testG10APatchIsMeasuredByWhatItLeaves(): void
    {
        $session = $this->createSession('max_attribute_bytes=1000');
        $session->set('a', \str_repeat('x', 600));
        $session->patch(['b' => \str_repeat('x', 600)], ['a']);

        self::assertSame(['b'], \array_keys($session->all()));
    }

    public function testG10ASessionHasAGreatestSizeInAll(): void
    {
        $owner = $this->createOwner('max_session_bytes=20000');
        $message = '"' . \str_repeat('x', 4000) . '"';
        $queued = 0;

        $e = self::assertThrows(LimitExceeded::class, static function () use ($owner, $message, &$queued): void {
            for (; $queued < 10; ++$queued) {
                $owner->enqueueOutgoing($message);
            }
        });

        self::assertSame(['max_session_bytes', 20000], [$e->limit, $e->maximum]);
        self::assertThrows(LimitExceeded::class, static fn () => $owner->session->set('k', \str_repeat('x', 5000)));
        self::assertCount($queued, $owner->takeOutgoing());
        $owner->session->set('k', \str_repeat('x', 5000));
        self::assertTrue($owner->session->has('k'));
    }

    public function testG10AStoreHasAGreatestNumberOfSessions(): void
    {
        $store = $this->createStore('max_sessions=3&on_full=reject', fresh: true);
        $sessions = [];

        try {
            while (\count($sessions) < 4) {
                $sessions[] = $store->createSession();
            }

            self::fail('No limit.');
        } catch (LimitExceeded $e) {
            self::assertSame(['max_sessions', 3, 4], [$e->limit, $e->maximum, $e->actual]);
            self::assertCount(3, $sessions);
        }

        $sessions[0]->destroy();
        self::assertTrue($store->createSession()->touch());
    }

    public function testG10ASessionInUseDoesNotGiveWay(): void
    {
        $store = $this->createStore('max_sessions=2', fresh: true);
        $one = $store->createSession();
        $two = $store->createSession();
        $two->attach();

        self::assertLimit('max_sessions', 2, 3, static fn () => $store->createSession());
        self::assertTrue($one->touch());
        self::assertTrue($two->touch());
    }

    public function testG10APrincipalHasAGreatestNumberOfSessions(): void
    {
        $store = $this->createStore('max_sessions_per_principal=2', fresh: true);
        $store->createSession(principal: 'alice');
        $second = $store->createSession(principal: 'alice');

        self::assertLimit(
            'max_sessions_per_principal',
            2,
            3,
            static fn () => $store->createSession(principal: 'alice'),
        );
        self::assertTrue($store->createSession(principal: 'bob')->touch());
        $second->destroy();
        self::assertTrue($store->createSession(principal: 'alice')->touch());
    }

    public function testG10AFullStoreCanBeEmptiedAndUsedAgain(): void
    {
        $store = $this->createStore('max_store_bytes=1M&max_session_bytes=1M&max_attribute_bytes=1M', fresh: true);
        $message = '"' . \str_repeat('x', 8000) . '"';
        $owner = $store->createSession()->attach();
        $request = $owner->registerPending(1);
        $owner->session->deliverResponse(1, $message);
        $owners = [];
        $full = null;

        for ($i = 0; $i < 1000 && $full === null; ++$i) {
            try {
                if ($i % 3 === 0) {
                    $owners[] = $store->createSession()->attach();
                }

                $owners[\array_key_last($owners)]->enqueueOutgoing($message);
            } catch (ExceptionInterface $full) {
                continue;
            }
        }

        self::assertInstanceOf(StoreFull::class, $full, (string) $full?->getMessage());
        self::assertThrows(StoreFull::class, static fn () => $owners[0]->enqueueOutgoing($message));

        // Operations that free space always work.
        self::assertSame($message, $request->claim()->payload);
        self::assertNotSame([], $messages = $owners[0]->peekOutgoing());
        self::assertSame(\count($messages), $owners[0]->acknowledge($messages[\count($messages) - 1]->sequence));
        self::assertNotSame([], $owners[1]->takeOutgoing());
        self::assertNotNull($owners[2]->detach());
        self::assertTrue($owners[3]->session->destroy());
        self::assertFalse($store->collect()->more);

        foreach ($owners as $i => $rest) {
            if ($i !== 3) {
                self::assertTrue($rest->session->destroy());
            }
        }

        $owner->enqueueOutgoing($message);
        self::assertBodies([$message], $owner->takeOutgoing());
        self::assertTrue($store->createSession()->touch());
    }
}
