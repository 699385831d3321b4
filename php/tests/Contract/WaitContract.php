<?php

declare(strict_types=1);

namespace McpState\Tests\Contract;

use McpState\Exception\InvalidArgument;
use McpState\Exception\SessionNotFound;
use McpState\Interest;
use McpState\OwnerKind;
use McpState\PendingStatus;
use McpState\WaitStatus;

/** Waiting for new events of interest. The tests of the guarantees cover the waking of other processes. */
trait WaitContract
{
    public function testAWaitWithNothingOfInterestEndsAtItsDeadline(): void
    {
        $result = $this->createOwner()->wait(1);

        self::assertSame(WaitStatus::Deadline, $result->status);
    }

    public function testAWaitIsReadyWhenThereIsSomethingAlready(): void
    {
        $owner = $this->createOwner();
        $request = $owner->registerPending(1);
        $owner->beginRequest('rpc');

        $owner->enqueueOutgoing('1');
        self::assertSame(WaitStatus::Ready, $owner->wait(1000, 0, Interest::Message)->status);
        self::assertSame(WaitStatus::Deadline, $owner->wait(1, 0, Interest::Resolution)->status);
        self::assertSame(WaitStatus::Deadline, $owner->wait(1, 0, Interest::Cancellation)->status);

        $owner->takeOutgoing();
        $owner->session->deliverResponse($request->id, '{}');
        self::assertSame(WaitStatus::Ready, $owner->wait(1000, 0, Interest::Resolution)->status);
        self::assertSame(WaitStatus::Deadline, $owner->wait(1, 0, Interest::Message)->status);

        $request->claim();
        $owner->session->cancelRequest('rpc');
        self::assertSame(WaitStatus::Ready, $owner->wait(1000, 0, Interest::Cancellation)->status);
        self::assertSame(WaitStatus::Ready, $owner->wait(1000)->status);
        self::assertSame(
            WaitStatus::Deadline,
            $owner->wait(1, 0, Interest::Resolution, Interest::Message)->status,
        );
    }

    public function testTheCursorHidesWhatWasSeen(): void
    {
        $owner = $this->createOwner();
        $owner->enqueueOutgoing('1');
        $seen = $owner->wait(1000);
        self::assertSame(WaitStatus::Ready, $seen->status);

        $nothing = $owner->wait(1, $seen->cursor);
        self::assertSame(WaitStatus::Deadline, $nothing->status);

        $owner->enqueueOutgoing('2');
        self::assertSame(WaitStatus::Ready, $owner->wait(1000, $nothing->cursor)->status);
    }

    public function testABroadcastIsAMessageForStreamsOnly(): void
    {
        $session = $this->createSession();
        $stream = $session->attach(OwnerKind::Stream);
        $reply = $session->attach(OwnerKind::Reply);
        $session->enqueueBroadcast('{}');

        self::assertSame(WaitStatus::Ready, $stream->wait(1000, 0, Interest::Message)->status);
        self::assertSame(WaitStatus::Deadline, $reply->wait(1, 0, Interest::Message)->status);
    }

    public function testAStreamThatComesLaterFindsTheBroadcastsThatAreWaiting(): void
    {
        $session = $this->createSession();
        $session->enqueueBroadcast('{}');
        $stream = $session->attach(OwnerKind::Stream);

        self::assertSame(WaitStatus::Ready, $stream->wait(1000, 0, Interest::Message)->status);
        self::assertSame(WaitStatus::Deadline, $session->attach(OwnerKind::Reply)->wait(1)->status);
    }

    public function testAWaitOnADestroyedSessionSaysSo(): void
    {
        $owner = $this->createOwner();
        $owner->session->destroy();

        self::assertSame(WaitStatus::Destroyed, $owner->wait(1000)->status);
    }

    public function testATimeoutIsAResolution(): void
    {
        $owner = $this->createOwner();
        $owner->registerPending(1, 1);
        $after = 0;

        do {
            $result = $owner->wait(1000, $after, Interest::Resolution);
            $after = $result->cursor;
        } while ($result->status === WaitStatus::Deadline);

        self::assertSame(WaitStatus::Ready, $result->status);
        self::assertSame(PendingStatus::TimedOut, $owner->claimAny()?->status);
    }

    public function testAwaitGivesTheAnswer(): void
    {
        $request = $this->createOwner()->sendRequest(['method' => 'ask']);
        $request->owner->session->deliverResponse($request->id, '"yes"');

        self::assertClaim(PendingStatus::Answered, '"yes"', $request->await());
        self::assertSame(PendingStatus::Unknown, $request->await()->status);
    }

    public function testAwaitEndsWithTheRequestsOwnTimeout(): void
    {
        $request = $this->createOwner()->sendRequest(['method' => 'ask'], 30);

        self::assertSame(PendingStatus::TimedOut, $request->await()->status);
    }

    public function testAwaitEndsAfterTheTimeGivenAndTheRequestGoesOn(): void
    {
        $request = $this->createOwner()->sendRequest(['method' => 'ask']);

        self::assertSame(PendingStatus::Waiting, $request->await(0)->status);
        self::assertSame(PendingStatus::Waiting, $request->await(20)->status);
        $request->owner->session->deliverResponse($request->id, '{}');
        self::assertTrue($request->await(\PHP_INT_MAX)->isAnswered());
    }

    public function testAwaitRunsTheCallersCodeBetweenSlices(): void
    {
        $request = $this->createOwner()->sendRequest(['method' => 'ask']);
        $slices = 0;
        $claim = $request->await(onSlice: static function () use ($request, &$slices): void {
            if (++$slices === 2) {
                $request->owner->session->deliverResponse($request->id, '"late in the second slice"');
            }
        });

        self::assertSame(2, $slices);
        self::assertTrue($claim->isAnswered());
    }

    public function testWhatTheCallersCodeThrowsEndsTheWaitAndNotTheRequest(): void
    {
        $request = $this->createOwner()->sendRequest(['method' => 'ask']);

        try {
            $request->await(onSlice: static fn () => throw new \DomainException('client gone'));
            self::fail('The exception did not reach the caller.');
        } catch (\DomainException) {
            self::assertSame(PendingStatus::Waiting, $request->claim()->status);
        }
    }

    public function testAwaitIsNotDisturbedByTheOwnersOtherRequests(): void
    {
        $owner = $this->createOwner();
        $other = $owner->sendRequest(['method' => 'ask']);
        $request = $owner->sendRequest(['method' => 'ask'], 60);
        $owner->session->deliverResponse($other->id, '"other"');

        self::assertSame(PendingStatus::TimedOut, $request->await()->status);
        self::assertSame('"other"', $other->await()->payload);
    }

    public function testAwaitSaysThatTheSessionIsGone(): void
    {
        $request = $this->createOwner()->sendRequest(['method' => 'ask']);

        self::assertThrows(SessionNotFound::class, static fn () => $request->await(
            onSlice: static fn () => $request->owner->session->destroy(),
        ));
    }

    public function testAwaitOfANegativeTimeIsRefused(): void
    {
        $request = $this->createOwner()->registerPending(1);

        self::assertThrows(InvalidArgument::class, static fn () => $request->await(-1));
    }
}
