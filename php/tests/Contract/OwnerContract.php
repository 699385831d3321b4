<?php

declare(strict_types=1);

namespace McpState\Tests\Contract;

use McpState\Exception\OwnerExpired;
use McpState\LateReason;
use McpState\OwnerKind;

/** Owners: one for each exchange, with a beginning and an end. */
trait OwnerContract
{
    public function testAnOwnerHasAnOpaqueUniqueToken(): void
    {
        $session = $this->createSession();
        $one = $session->attach();
        $two = $session->attach(OwnerKind::Reply, 60_000);

        self::assertMatchesRegularExpression('/^[0-9a-f]{32}$/', $one->token);
        self::assertNotSame($one->token, $two->token);
        self::assertSame($session, $one->session);
    }

    public function testAnOwnerIsFoundByItsToken(): void
    {
        $owner = $this->createOwner();
        $owner->enqueueOutgoing('"m"');

        self::assertBodies(['"m"'], $owner->session->owner($owner->token)->takeOutgoing());
    }

    public function testDetachTellsWhatItDropped(): void
    {
        $owner = $this->createOwner();
        $owner->enqueueOutgoing('1');
        $owner->enqueueOutgoing('2');
        $owner->registerPending(7);
        $detached = $owner->detach();

        self::assertNotNull($detached);
        self::assertSame([2, 1], [$detached->droppedMessages, $detached->abandonedPending]);
        self::assertNull($owner->detach());
    }

    public function testADetachedOwnerCanDoNothingMore(): void
    {
        $owner = $this->createOwner();
        $request = $owner->registerPending(7);
        $owner->detach();

        foreach (
            [
                static fn () => $owner->enqueueOutgoing('{}'),
                static fn () => $owner->takeOutgoing(),
                static fn () => $owner->peekOutgoing(),
                static fn () => $owner->acknowledge(1),
                static fn () => $owner->sendRequest(['method' => 'm']),
                static fn () => $owner->registerPending(8),
                static fn () => $owner->pending(),
                static fn () => $owner->claimAny(),
                static fn () => $owner->resolveTimeouts(),
                static fn () => $owner->wait(0),
                static fn () => $owner->beginRequest(1),
                static fn () => $owner->finishRequest(1),
                static fn () => $owner->isCancelled(1),
                static fn () => $owner->renew(),
                static fn () => $request->claim(),
                static fn () => $request->peek(),
                static fn () => $request->cancel(),
                static fn () => $request->await(),
            ] as $do
        ) {
            self::assertThrows(OwnerExpired::class, $do);
        }
    }

    public function testWhatADetachedOwnerAwaitedIsAbandoned(): void
    {
        $owner = $this->createOwner();
        $request = $owner->sendRequest(['method' => 'ask']);
        $owner->detach();

        self::assertSame(LateReason::Abandoned, $owner->session->deliverResponse($request->id, '{}')->reason);
        self::assertSame([], $owner->session->allPending());
    }

    public function testTheEndOfOneOwnerIsNothingToAnother(): void
    {
        $session = $this->createSession();
        $ends = $session->attach();
        $stays = $session->attach();
        $stays->enqueueOutgoing('1');
        $request = $stays->sendRequest('{"method":"ask"}');
        $ends->detach();

        self::assertCount(2, $stays->takeOutgoing());
        self::assertTrue($session->deliverResponse($request->id, '"yes"')->delivered);
        self::assertSame('"yes"', $request->claim()->payload);
    }

    public function testAnOwnerWhoseProcessLivesOutlastsItsLease(): void
    {
        $store = $this->createStore();
        $owner = $store->createSession()->attach(leaseMs: 1);
        $owner->enqueueOutgoing('1');

        \usleep(20_000);
        $store->collect();
        self::assertBodies(['1'], $owner->takeOutgoing());
        $owner->renew();
    }

    public function testATokenThatNobodyGotIsNoOwner(): void
    {
        $owner = $this->createSession()->owner(\str_repeat('0', 32));

        self::assertThrows(OwnerExpired::class, static fn () => $owner->takeOutgoing());
        self::assertNull($owner->detach());
    }

    public function testATokenIsGoodForItsOwnSessionOnly(): void
    {
        $owner = $this->createOwner();
        $stranger = $this->createSession()->owner($owner->token);

        self::assertThrows(OwnerExpired::class, static fn () => $stranger->enqueueOutgoing('{}'));
    }
}
