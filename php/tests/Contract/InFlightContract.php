<?php

declare(strict_types=1);

namespace McpState\Tests\Contract;

use McpState\CancelOutcome;
use McpState\DuplicatePolicy;

/** In-flight requests of the client: equal ids, and cancellation. */
trait InFlightContract
{
    public function testG6RequestsWithEqualIdsAreServedSideBySide(): void
    {
        $session = $this->createSession();
        $one = $session->attach();
        $two = $session->attach();

        self::assertTrue($one->beginRequest(1));
        self::assertTrue($two->beginRequest(1));
        $one->enqueueOutgoing('"answer of one"');
        $two->enqueueOutgoing('"answer of two"');
        self::assertFalse($one->finishRequest(1));
        self::assertBodies(['"answer of two"'], $two->takeOutgoing());
        self::assertBodies(['"answer of one"'], $one->takeOutgoing());
        self::assertFalse($two->finishRequest(1));
    }

    public function testG6TheSecondOfEqualIdsIsRefusedWhereAsked(): void
    {
        $session = $this->createSession();
        $one = $session->attach();
        $two = $session->attach();

        self::assertTrue($one->beginRequest(1, DuplicatePolicy::Reject));
        self::assertFalse($two->beginRequest(1, DuplicatePolicy::Reject));
        self::assertNull($two->finishRequest(1));
        self::assertTrue($two->beginRequest('1', DuplicatePolicy::Reject));
        self::assertFalse($one->finishRequest(1));
        self::assertTrue($two->beginRequest(1, DuplicatePolicy::Reject));
    }

    public function testACancelledRequestIsToldToItsOwner(): void
    {
        $session = $this->createSession();
        $owner = $session->attach();
        $other = $session->attach();
        $owner->beginRequest('a');
        $other->beginRequest('b');

        self::assertFalse($owner->isCancelled('a'));
        self::assertSame(CancelOutcome::Cancelled, $session->cancelRequest('a'));
        self::assertTrue($owner->isCancelled('a'));
        self::assertFalse($other->isCancelled('b'));
        self::assertTrue($owner->finishRequest('a'));
        self::assertFalse($other->finishRequest('b'));
        self::assertNull($owner->finishRequest('a'));
        self::assertFalse($owner->isCancelled('a'));
    }

    public function testAnIntegerIdIsNotAStringId(): void
    {
        $owner = $this->createOwner();
        $owner->beginRequest(1);

        self::assertSame(CancelOutcome::Unknown, $owner->session->cancelRequest('1'));
        self::assertNull($owner->finishRequest('1'));
        self::assertSame(CancelOutcome::Cancelled, $owner->session->cancelRequest(1));
        self::assertTrue($owner->finishRequest(1));
    }

    public function testACancellationThatCouldMeanSeveralTouchesNone(): void
    {
        $session = $this->createSession();
        $one = $session->attach();
        $two = $session->attach();
        $one->beginRequest(1);
        $two->beginRequest(1);

        self::assertSame(CancelOutcome::Ambiguous, $session->cancelRequest(1));
        self::assertFalse($one->isCancelled(1));
        self::assertFalse($two->finishRequest(1));
        self::assertSame(CancelOutcome::Cancelled, $session->cancelRequest(1));
        self::assertTrue($one->isCancelled(1));
    }

    public function testTheEndOfAnOwnerEndsItsRequests(): void
    {
        $session = $this->createSession();
        $owner = $session->attach();
        $owner->beginRequest(1);
        $owner->detach();

        self::assertSame(CancelOutcome::Unknown, $session->cancelRequest(1));
        self::assertTrue($session->attach()->beginRequest(1, DuplicatePolicy::Reject));
    }
}
