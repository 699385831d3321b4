<?php

declare(strict_types=1);

namespace McpState\Tests\Contract;

use McpState\CancelOutcome;
use McpState\Exception\DuplicateRequestId;
use McpState\LateReason;
use McpState\PendingStatus;

/** Pending requests: each ends exactly once, and only its owner sees how. */
trait PendingContract
{
    public function testARequestIsRegisteredAndQueuedAtOnce(): void
    {
        $owner = $this->createOwner();
        $request = $owner->sendRequest(
            ['jsonrpc' => '2.0', 'method' => 'elicitation/create', 'params' => ['message' => 'caf\u{e9}/x']],
            context: 'ctx',
        );
        $messages = $owner->takeOutgoing();

        self::assertCount(1, $messages);
        self::assertSame('ctx', $messages[0]->context);
        self::assertEquals(
            [
                'jsonrpc' => '2.0',
                'id' => $request->id,
                'method' => 'elicitation/create',
                'params' => ['message' => 'caf\u{e9}/x'],
            ],
            \json_decode($messages[0]->body, true),
        );
        $pending = $owner->pending();
        self::assertCount(1, $pending);
        self::assertSame(
            [$request->id, PendingStatus::Waiting, 'elicitation/create'],
            [$pending[0]->id, $pending[0]->status, $pending[0]->method],
        );
        self::assertGreaterThan(0, $pending[0]->remainingMs);
        self::assertLessThanOrEqual(120_000, $pending[0]->remainingMs);
    }

    public function testAnAnswerIsClaimedOnce(): void
    {
        $owner = $this->createOwner();
        $request = $owner->sendRequest(['method' => 'ask']);

        $waiting = $request->claim();
        self::assertClaim(PendingStatus::Waiting, null, $waiting);
        self::assertGreaterThan(0, $waiting->remainingMs);
        self::assertFalse($waiting->isAnswered());
        self::assertNull($waiting->json());

        $delivery = $owner->session->deliverResponse($request->id, ['result' => ['ok' => true]]);
        self::assertTrue($delivery->delivered);
        self::assertNull($delivery->reason);
        self::assertSame('{"result":{"ok":true}}', $request->peek());

        $answered = $request->claim();
        self::assertClaim(PendingStatus::Answered, '{"result":{"ok":true}}', $answered);
        self::assertTrue($answered->isAnswered());
        self::assertSame(['result' => ['ok' => true]], $answered->json());
        self::assertNull($answered->remainingMs);

        self::assertClaim(PendingStatus::Unknown, null, $request->claim());
        self::assertNull($request->peek());
        self::assertSame([], $owner->session->allPending());
    }

    public function testAnIdIsRegisteredOnce(): void
    {
        $session = $this->createSession();
        $one = $session->attach();
        $two = $session->attach();
        $id = $session->nextRequestId();
        $request = $one->registerPending($id, 60_000, 'roots/list');

        $e = self::assertThrows(DuplicateRequestId::class, static fn () => $two->registerPending($id));
        self::assertStringContainsString((string) $id, $e->getMessage());
        self::assertThrows(DuplicateRequestId::class, static fn () => $one->registerPending($id));
        self::assertSame(PendingStatus::Waiting, $request->claim()->status);
        self::assertSame('roots/list', $one->pending()[0]->method);
        self::assertSame([], $two->pending());
    }

    public function testG5IdsOfRequestsAreNeverShared(): void
    {
        $session = $this->createSession();
        $one = $session->attach();
        $two = $session->attach();
        $ids = [];

        for ($i = 0; $i < 20; ++$i) {
            $ids[] = $session->nextRequestId();
            $ids[] = $one->sendRequest(['method' => 'm'])->id;
            $ids[] = $two->sendRequest(['method' => 'm'])->id;
        }

        self::assertCount(60, \array_unique($ids));
    }

    public function testG3OnlyItsOwnerClaimsOrCancelsARequest(): void
    {
        $session = $this->createSession();
        $mine = $session->attach()->sendRequest(['method' => 'ask']);
        $other = $session->attach();
        $session->deliverResponse($mine->id, '"mine"');

        self::assertSame(PendingStatus::NotOwner, $other->pendingRequest($mine->id)->claim()->status);
        self::assertSame(CancelOutcome::NotOwner, $other->pendingRequest($mine->id)->cancel());
        self::assertNull($other->pendingRequest($mine->id)->peek());
        self::assertNull($other->claimAny());
        self::assertSame([], $other->pending());
        self::assertSame([], $other->resolveTimeouts());
        self::assertClaim(PendingStatus::Answered, '"mine"', $mine->claim());
    }

    public function testG4ALateAnswerIsDiscardedAndSaysWhy(): void
    {
        $owner = $this->createOwner();
        $session = $owner->session;
        $deliver = static fn (int $id) => $session->deliverResponse($id, '"late"')->reason;

        self::assertSame(LateReason::Unknown, $deliver(1));

        $answered = $owner->sendRequest(['method' => 'ask']);
        self::assertNull($deliver($answered->id));
        self::assertSame(LateReason::AlreadyAnswered, $deliver($answered->id));
        $answered->claim();
        self::assertSame(LateReason::Finished, $deliver($answered->id));

        $timedOut = $this->createTimedOut($owner);
        self::assertSame(LateReason::TimedOut, $deliver($timedOut->id));
        self::assertSame(PendingStatus::TimedOut, $timedOut->claim()->status);
        self::assertSame(LateReason::TimedOut, $deliver($timedOut->id));

        $cancelled = $owner->sendRequest(['method' => 'ask']);
        $cancelled->cancel();
        self::assertSame(LateReason::Cancelled, $deliver($cancelled->id));

        $next = $owner->sendRequest(['method' => 'ask']);
        self::assertSame(PendingStatus::Waiting, $next->claim()->status);
    }

    public function testTheFirstOfTwoAnswersCounts(): void
    {
        $request = $this->createOwner()->sendRequest(['method' => 'ask']);
        $session = $request->owner->session;
        $session->deliverResponse($request->id, '"first"');
        $session->deliverResponse($request->id, '"second"');

        self::assertSame('"first"', $request->claim()->payload);
    }

    /** @dataProvider notIntegers */
    public function testOnlyAnIntegerNamesARequestToTheClient(mixed $id): void
    {
        $owner = $this->createOwner();
        $request = $owner->registerPending(7);

        $delivery = $owner->session->deliverResponse($id, '{}');
        self::assertSame([false, LateReason::Unknown], [$delivery->delivered, $delivery->reason]);
        self::assertSame(PendingStatus::Waiting, $request->claim()->status);
    }

    /** @return iterable<string, array{mixed}> */
    public static function notIntegers(): iterable
    {
        yield 'string' => ['7'];
        yield 'float' => [7.0];
        yield 'dotted' => ['7.x'];
        yield 'null' => [null];
        yield 'true' => [true];
        yield 'array' => [[7]];
    }

    public function testATimeoutIsSeenByItsOwnerOnce(): void
    {
        $owner = $this->createOwner();
        $request = $this->createTimedOut($owner);

        self::assertSame(0, $owner->pending()[0]->remainingMs);
        self::assertClaim(PendingStatus::TimedOut, null, $request->claim());
        self::assertClaim(PendingStatus::Unknown, null, $request->claim());
    }

    public function testAnAnswerInTimeCountsAlsoWhenClaimedAfterTheDeadline(): void
    {
        $owner = $this->createOwner();
        $request = $owner->registerPending(7, 50);

        self::assertTrue($owner->session->deliverResponse(7, '"in time"')->delivered);
        \usleep(80_000);
        self::assertSame([], $owner->resolveTimeouts());
        self::assertClaim(PendingStatus::Answered, '"in time"', $request->claim());
    }

    public function testResolveTimeoutsRemovesWhatHasTimedOut(): void
    {
        $owner = $this->createOwner();
        $one = $this->createTimedOut($owner);
        $two = $this->createTimedOut($owner);
        $alive = $owner->sendRequest(['method' => 'ask']);

        self::assertEqualsCanonicalizing([$one->id, $two->id], $owner->resolveTimeouts());
        self::assertSame([], $owner->resolveTimeouts());
        self::assertSame([$alive->id], \array_column($owner->pending(), 'id'));
    }

    public function testClaimAnyGivesOneResolvedRequestAfterAnother(): void
    {
        $owner = $this->createOwner();
        $answered = $owner->sendRequest(['method' => 'ask']);
        $waiting = $owner->sendRequest(['method' => 'ask']);
        $timedOut = $this->createTimedOut($owner);
        $owner->session->deliverResponse($answered->id, '"yes"');
        $claims = [];

        while (null !== $claim = $owner->claimAny()) {
            $claims[$claim->id] = [$claim->status, $claim->payload];
        }

        self::assertEquals(
            [
                $answered->id => [PendingStatus::Answered, '"yes"'],
                $timedOut->id => [PendingStatus::TimedOut, null],
            ],
            $claims,
        );
        self::assertSame(PendingStatus::Waiting, $waiting->claim()->status);
    }

    public function testCancelSaysWhatItFound(): void
    {
        $owner = $this->createOwner();
        $request = $owner->sendRequest(['method' => 'ask']);

        self::assertSame(CancelOutcome::Unknown, $owner->pendingRequest($request->id + 1)->cancel());
        self::assertSame(CancelOutcome::Cancelled, $request->cancel());
        self::assertSame(CancelOutcome::AlreadyCancelled, $request->cancel());
        self::assertSame(PendingStatus::Cancelled, $request->claim()->status);
        self::assertSame(PendingStatus::Unknown, $request->claim()->status);

        $answered = $owner->sendRequest(['method' => 'ask']);
        $owner->session->deliverResponse($answered->id, '{}');
        self::assertSame(CancelOutcome::AlreadyAnswered, $answered->cancel());
        self::assertTrue($answered->claim()->isAnswered());

        self::assertSame(CancelOutcome::TimedOut, $this->createTimedOut($owner)->cancel());
    }

    public function testAllPendingListsTheRequestsOfAllOwners(): void
    {
        $session = $this->createSession();
        $one = $session->attach()->sendRequest(['method' => 'roots/list']);
        $two = $session->attach()->sendRequest(['method' => 'sampling/createMessage']);
        $session->deliverResponse($two->id, '{}');
        $found = [];

        foreach ($session->allPending() as $info) {
            $found[$info->id] = [$info->status, $info->method];
        }

        self::assertEquals(
            [
                $one->id => [PendingStatus::Waiting, 'roots/list'],
                $two->id => [PendingStatus::Answered, 'sampling/createMessage'],
            ],
            $found,
        );
    }

    public function testTheStoresRequestTimeoutIsNotTheLibrarys(): void
    {
        $request = $this->createOwner()->registerPending(1, 5000);

        self::assertGreaterThan(0, $request->claim()->remainingMs);
        self::assertLessThanOrEqual(5000, $request->claim()->remainingMs);
    }
}
