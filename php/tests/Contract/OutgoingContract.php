<?php

declare(strict_types=1);

namespace McpState\Tests\Contract;

use McpState\OwnerKind;

/** Outgoing messages: delivered in order, once, through the stream of their owner. */
trait OutgoingContract
{
    public function testMessagesComeInOrderAndOnce(): void
    {
        $owner = $this->createOwner();
        $first = $owner->enqueueOutgoing('{"n":1}');
        $second = $owner->enqueueOutgoing(['n' => 2]);
        $third = $owner->enqueueOutgoing('{"n":3}', '{"kind":"progress"}');

        self::assertSame([1, 1], [$second - $first, $third - $second]);
        $messages = $owner->takeOutgoing();
        self::assertBodies(['{"n":1}', '{"n":2}', '{"n":3}'], $messages);
        self::assertSame([$first, $second, $third], \array_column($messages, 'sequence'));
        self::assertSame(['', '', '{"kind":"progress"}'], \array_column($messages, 'context'));
        self::assertSame([], $owner->takeOutgoing());
    }

    public function testTakeTakesAtMostWhatItIsAskedFor(): void
    {
        $owner = $this->createOwner();

        foreach (['1', '2', '3'] as $message) {
            $owner->enqueueOutgoing($message);
        }

        self::assertBodies(['1', '2'], $owner->takeOutgoing(2));
        self::assertBodies(['3'], $owner->takeOutgoing(2));
    }

    public function testSequenceNumbersAreNotUsedAgain(): void
    {
        $owner = $this->createOwner();
        $first = $owner->enqueueOutgoing('1');
        $owner->takeOutgoing();

        self::assertGreaterThan($first, $owner->enqueueOutgoing('2'));
    }

    public function testPeekedMessagesStayUntilAcknowledged(): void
    {
        $owner = $this->createOwner();

        foreach (['1', '2', '3'] as $message) {
            $owner->enqueueOutgoing($message);
        }

        $peeked = $owner->peekOutgoing(2);
        self::assertBodies(['1', '2'], $peeked);
        self::assertBodies(['1', '2'], $owner->peekOutgoing(2));
        self::assertSame(2, $owner->acknowledge($peeked[1]->sequence));
        self::assertSame(0, $owner->acknowledge($peeked[1]->sequence));
        self::assertBodies(['3'], $owner->peekOutgoing());
        self::assertBodies(['3'], $owner->takeOutgoing());
    }

    public function testG3OnlyItsOwnerTakesAMessage(): void
    {
        $session = $this->createSession();
        $mine = $session->attach();
        $other = $session->attach();
        $mine->enqueueOutgoing('"mine"');

        self::assertSame([], $other->takeOutgoing());
        self::assertSame([], $other->peekOutgoing());
        self::assertSame(0, $other->acknowledge(\PHP_INT_MAX));
        self::assertBodies(['"mine"'], $mine->takeOutgoing());
    }

    public function testABroadcastGoesToOneStreamAndToNoReply(): void
    {
        $session = $this->createSession();
        $reply = $session->attach(OwnerKind::Reply);
        $one = $session->attach(OwnerKind::Stream);
        $two = $session->attach(OwnerKind::Stream);
        $number = $session->enqueueBroadcast(['method' => 'notifications/x'], 'ctx');

        self::assertSame([], $reply->takeOutgoing());
        $taken = $two->takeOutgoing();
        self::assertBodies(['{"method":"notifications/x"}'], $taken);
        self::assertSame('ctx', $taken[0]->context);
        self::assertSame([], $one->takeOutgoing());
        self::assertGreaterThan($number, $session->enqueueBroadcast('2'));
    }

    public function testABroadcastWaitsForTheFirstStream(): void
    {
        $session = $this->createSession();
        $session->enqueueBroadcast('"early"');

        self::assertSame([], $session->attach(OwnerKind::Reply)->takeOutgoing());
        self::assertBodies(['"early"'], $session->attach()->takeOutgoing());
    }

    public function testAPeekedBroadcastReturnsWhenItsOwnerEndsWithoutAcknowledging(): void
    {
        $session = $this->createSession();
        $one = $session->attach();
        $two = $session->attach();
        $session->enqueueBroadcast('"b"');

        self::assertBodies(['"b"'], $one->peekOutgoing());
        self::assertSame([], $two->peekOutgoing());
        $one->detach();
        $messages = $two->peekOutgoing();
        self::assertBodies(['"b"'], $messages);
        self::assertSame(1, $two->acknowledge($messages[0]->sequence));
        $two->detach();
        self::assertSame([], $session->attach()->takeOutgoing());
    }
}
