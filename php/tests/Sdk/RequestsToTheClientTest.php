<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk;

use McpState\Sdk\Scope\Stdio;
use McpState\Tests\Sdk\Support\SdkTestCase;
use McpState\Tests\Support\Child;

/** The keys that the SDK reads and writes to send a request to the client. */
final class RequestsToTheClientTest extends SdkTestCase
{
    public function testReadingTheCounterTakesANumberAndWritingItDoesNothing(): void
    {
        $id = $this->session();
        $one = $this->resolved($this->manager(), $id);
        $other = $this->resolved($this->manager(), $id);
        $first = $one->get(self::COUNTER, 1000);
        $second = $other->get(self::COUNTER, 1000);
        $one->set(self::COUNTER, $first + 1);
        $one->save();
        $other->set(self::COUNTER, $second + 1);
        $other->save();
        self::assertCount(4, \array_unique([$first, $second, $one->get(self::COUNTER), $other->get(self::COUNTER)]));
    }

    public function testTheQueueShowsOnlyTheMessagesOfItsOwnExchange(): void
    {
        $id = $this->session();
        [$here, $there] = [$this->manager(), $this->manager()];
        $this->queue($this->resolved($here, $id), 'mine');
        $this->queue($this->resolved($there, $id), 'yours');
        self::assertSame([self::row('mine')], $here->createWithId($id)->get(self::QUEUE, []));
        self::assertSame([self::row('yours')], $there->createWithId($id)->get(self::QUEUE, []));
    }

    public function testEmptyingTheQueueRemovesExactlyTheMessagesThatWereShown(): void
    {
        $id = $this->session();
        $manager = $this->manager();
        $handler = $this->resolved($manager, $id);
        $this->queue($handler, 'shown');
        $loop = $manager->createWithId($id);
        self::assertCount(1, $loop->get(self::QUEUE, []));
        $this->queue($handler, 'later');
        $loop->set(self::QUEUE, []);
        $loop->save();
        self::assertSame([self::row('later')], $manager->createWithId($id)->get(self::QUEUE, []));
    }

    public function testALongerQueueAppendsItsTail(): void
    {
        $id = $this->session();
        $manager = $this->manager();
        $session = $this->resolved($manager, $id);
        $this->queue($session, 'a');
        $other = $manager->createWithId($id);
        $shown = $other->get(self::QUEUE, []);
        $this->queue($session, 'b');
        $other->set(self::QUEUE, [...$shown, self::row('c')]);
        self::assertSame(
            [self::row('a'), self::row('b'), self::row('c')],
            $manager->createWithId($id)->get(self::QUEUE, []),
        );
    }

    public function testEqualMessagesInTheQueueAreEachDelivered(): void
    {
        $manager = $this->manager();
        $session = $this->resolved($manager, $this->session());
        $this->queue($session, 'same');
        $this->queue($session, 'same');
        self::assertCount(2, $manager->createWithId($session->getId())->get(self::QUEUE, []));
    }

    public function testTheLoopSeesItsOwnRequestsAndTheAnswerersObjectSeesAll(): void
    {
        $id = $this->session();
        [$one, $other] = [$this->manager(blocking: false), $this->manager(blocking: false)];
        $first = $this->ask($this->resolved($one, $id));
        $second = $this->ask($this->resolved($other, $id));
        self::assertSame([$first], \array_keys($one->createWithId($id)->get(self::PENDING, [])));
        self::assertSame([$second], \array_keys($other->createWithId($id)->get(self::PENDING, [])));
        $seen = \array_keys($this->resolved($this->manager(), $id)->get(self::PENDING, []));
        self::assertEqualsCanonicalizing([$first, $second], $seen);
    }

    public function testRemovingARequestOfAnotherExchangeDoesNothing(): void
    {
        $id = $this->session();
        $owner = $this->manager(blocking: false);
        $asked = $this->ask($this->resolved($owner, $id));
        $stranger = $this->resolved($this->manager(), $id);
        self::assertSame([$asked], \array_keys($stranger->get(self::PENDING, [])));
        $stranger->set(self::PENDING, []);
        $stranger->save();
        self::assertSame([$asked], \array_keys($owner->createWithId($id)->get(self::PENDING, [])));
    }

    public function testALiveRequestNeverTimesOutByTheSdksClock(): void
    {
        $manager = $this->manager(blocking: false);
        $session = $this->resolved($manager, $this->session());
        $id = $this->ask($session);
        $entry = $manager->createWithId($session->getId())->get(self::PENDING, [])[$id];
        self::assertSame($id, $entry['request_id']);
        self::assertSame(\PHP_INT_MAX, $entry['timeout']);
        self::assertLessThanOrEqual(1, \time() - $entry['timestamp']);
    }

    public function testATimedOutRequestIsShownAsSuchUntilItsOwnersNextWrite(): void
    {
        $manager = $this->manager(blocking: false);
        $session = $this->resolved($manager, $this->session());
        $expired = $this->ask($session, 0);

        for ($i = 0; $i < 3; ++$i) {
            $entries = $manager->createWithId($session->getId())->get(self::PENDING, []);
            self::assertSame([$expired => true], self::timedOut($entries), 'a loop may read any number of times');
        }

        // A late answer is already refused.
        $this->answer($session->getId(), $expired);
        self::assertNull($manager->createWithId($session->getId())->get("_mcp.responses.$expired"));
        self::assertTrue($this->log->has("the answer to request $expired is discarded: TimedOut"));

        // The SDK up to 0.8 keeps the entry when it asks again. The entry must not answer the next question.
        $next = $this->ask($manager->createWithId($session->getId()));
        $entries = $manager->createWithId($session->getId())->get(self::PENDING, []);
        self::assertSame([$next => false], self::timedOut($entries));
    }

    public function testAWriteThatDropsATimedOutRequestEndsIt(): void
    {
        $manager = $this->manager(blocking: false);
        $session = $this->resolved($manager, $this->session());
        $expired = $this->ask($session, 0);
        $loop = $manager->createWithId($session->getId());
        $pending = $loop->get(self::PENDING, []);
        unset($pending[$expired]);
        $loop->set(self::PENDING, $pending);
        self::assertSame([], $manager->createWithId($session->getId())->get(self::PENDING, []));
        $this->answer($session->getId(), $expired);
        self::assertTrue($this->log->has('is discarded: TimedOut') || $this->log->has('is discarded: Finished'));
    }

    public function testAnAnswerReachesTheExchangeThatAskedAndNoOther(): void
    {
        $id = $this->session();
        [$one, $other] = [$this->manager(blocking: false), $this->manager(blocking: false)];
        $asked = $this->ask($this->resolved($one, $id));
        $this->ask($this->resolved($other, $id));
        $this->answer($id, $asked, 'for one');
        self::assertNull($other->createWithId($id)->get("_mcp.responses.$asked"));
        $response = $one->createWithId($id)->get("_mcp.responses.$asked");
        self::assertSame(self::response($asked, 'for one'), $response);
    }

    public function testRemovingTheRequestClaimsItsAnswerAndWritingNullDoesNothing(): void
    {
        $manager = $this->manager(blocking: false);
        $session = $this->resolved($manager, $this->session());
        $asked = $this->ask($session);
        $this->answer($session->getId(), $asked);
        $loop = $manager->createWithId($session->getId());
        $loop->set("_mcp.responses.$asked", null);
        self::assertNotNull($loop->get("_mcp.responses.$asked"));
        $pending = $loop->get(self::PENDING, []);
        unset($pending[$asked]);
        $loop->set(self::PENDING, $pending);
        self::assertNull($manager->createWithId($session->getId())->get("_mcp.responses.$asked"));
        self::assertSame([], $this->store()->openSession((string) $session->getId())?->allPending());
    }

    public function testLateUnknownAndSecondAnswersAreDiscardedAndLogged(): void
    {
        $manager = $this->manager(blocking: false);
        $session = $this->resolved($manager, $this->session());
        $asked = $this->ask($session);
        $this->answer($session->getId(), $asked, 'first');
        $this->answer($session->getId(), $asked, 'second');
        self::assertTrue($this->log->has("request $asked is discarded: AlreadyAnswered"));
        $this->answer($session->getId(), $asked + 1);
        self::assertTrue($this->log->has('request ' . ($asked + 1) . ' is discarded: Unknown'));
        $response = $manager->createWithId($session->getId())->get("_mcp.responses.$asked");
        self::assertSame(self::response($asked, 'first'), $response);
    }

    /** @return iterable<string, array{string, mixed}> */
    public function strangeIds(): iterable
    {
        yield 'a string' => ['%d', '%d'];
        yield 'a dot' => ['%d.x', '%d.x'];
        yield 'a leading zero' => ['0%d', '0%d'];
        yield 'a plus' => ['+%d', '+%d'];
        yield 'a fraction' => ['%d.0', 1.0];
        yield 'nothing' => ['', null];
    }

    /** @dataProvider strangeIds */
    public function testOnlyAPlainIntegerIsTheIdOfARequestToTheClient(string $key, mixed $id): void
    {
        $manager = $this->manager(blocking: false);
        $session = $this->resolved($manager, $this->session());
        $asked = $this->ask($session);
        $sent = $this->resolved($this->manager(), $session->getId());
        $sent->set('_mcp.responses.' . \sprintf($key, $asked), self::response(\is_string($id) ? \sprintf($id, $asked) : $id));
        self::assertTrue($sent->save());
        self::assertTrue($this->log->has('is discarded: Unknown'));
        self::assertNull($manager->createWithId($session->getId())->get("_mcp.responses.$asked"));
        self::assertArrayNotHasKey('_mcp', $this->store()->openSession((string) $session->getId())?->all() ?? []);
    }

    public function testAnAnswerToAKilledExchangeIsDiscardedAsAbandoned(): void
    {
        $session = $this->session();
        $child = Child::start(
            '
            require "' . __DIR__ . '/autoload.php";
            $manager = new Sdk\SessionManager($store);
            $manager->gc();
            $id = \Symfony\Component\Uid\Uuid::fromString($args[0]);
            $manager->exists($id);
            $session = $manager->createWithId($id);
            $n = $session->get("_mcp.request_id_counter");
            $session->set("_mcp.pending_requests", [$n => ["request_id" => $n, "timeout" => 60, "timestamp" => time()]]);
            say($n);
            hear();
            ',
            $this->dsn(),
            (string) $session,
        );
        $asked = (int) $child->hear();
        $child->kill();
        $this->answer($session, $asked);
        self::assertTrue($this->log->has("request $asked is discarded: Abandoned"));
    }

    public function testARefusedQuestionIsAnsweredWithAnErrorAndNeverSent(): void
    {
        $manager = new \McpState\Sdk\SessionManager(
            \McpState\Store::open($this->dsn('&max_pending=1')),
            logger: $this->log,
            blocking: false,
        );
        $manager->gc();
        $session = $manager->create();
        $allowed = $this->ask($session);
        $refused = $this->ask($session, 60, 'too many');
        self::assertSame(
            [$allowed, $refused],
            \array_keys($manager->createWithId($session->getId())->get(self::PENDING, [])),
        );
        $error = $manager->createWithId($session->getId())->get("_mcp.responses.$refused");
        self::assertStringContainsString('max_pending', \json_encode($error));
        self::assertCount(1, $manager->createWithId($session->getId())->get(self::QUEUE, []));
    }

    public function testNoMoreExchangesWaitThanAllowedInAllSessionsOfTheStore(): void
    {
        [$one, $other] = [$this->manager(blocking: false, maxWaiting: 1), $this->manager(blocking: false, maxWaiting: 1)];
        $first = $this->resolved($one, $this->session());
        $second = $this->resolved($other, $this->session());
        $asked = $this->ask($first);
        $refused = $this->ask($second);
        $error = $other->createWithId($second->getId())->get("_mcp.responses.$refused");
        self::assertStringContainsString('already wait for their clients', \json_encode($error));
        self::assertNull($one->createWithId($first->getId())->get("_mcp.responses.$asked"));

        // An exchange that has its answer frees its place for the next one.
        $loop = $one->createWithId($first->getId());
        $loop->get(self::PENDING, []);
        $loop->set(self::PENDING, []);
        $again = $this->ask($second);
        self::assertNull($other->createWithId($second->getId())->get("_mcp.responses.$again"));
    }

    public function testAnAnswerTooLargeToStoreEndsTheQuestionWithAnError(): void
    {
        $store = \McpState\Store::open($this->dsn('&max_message_bytes=1000'));
        $manager = new \McpState\Sdk\SessionManager($store, logger: $this->log, blocking: false);
        $manager->gc();
        $session = $manager->create();
        $asked = $this->ask($session);
        $answering = new \McpState\Sdk\SessionManager($store, logger: $this->log);
        $resolved = $this->resolved($answering, $session->getId());
        $resolved->set("_mcp.responses.$asked", self::response($asked, \str_repeat('x', 2000)));
        $response = $manager->createWithId($session->getId())->get("_mcp.responses.$asked");
        self::assertStringContainsString('1000', $response['error']['message']);
    }

    public function testOnlyTheFirstLookAfterAQueueReadSleepsUntilSomethingIsReady(): void
    {
        $manager = $this->manager();
        $session = $this->resolved($manager, $this->session());
        $this->ask($session, 1);
        $loop = $manager->createWithId($session->getId());

        // A read without a previous read of the queue returns at once, and the request is still pending.
        self::assertSame([false], \array_values(self::timedOut($loop->get(self::PENDING, []))));
        $manager->createWithId($session->getId())->get(self::QUEUE, []);

        // The object that is resolved for the message with the answer never sleeps.
        self::assertSame([false], \array_values(self::timedOut($session->get(self::PENDING, []))));

        // This read sleeps until the timeout, which is the only event.
        $entries = $manager->createWithId($session->getId())->get(self::PENDING, []);
        self::assertSame([true], \array_values(self::timedOut($entries)));

        // The second read of a turn returns at once: the first took an answer, and another request is still pending.
        $answered = $this->ask($session, 60);
        $live = $this->ask($session, 60);
        $this->answer($session->getId(), $answered);
        $manager->createWithId($session->getId())->get(self::QUEUE, []);
        $loop = $manager->createWithId($session->getId());
        $pending = $loop->get(self::PENDING, []);
        unset($pending[$answered]);
        $loop->set(self::PENDING, $pending);
        self::assertSame(
            [$live => false],
            self::timedOut($manager->createWithId($session->getId())->get(self::PENDING, [])),
        );
    }

    public function testALookWithNothingLiveOrSomethingReadyReturnsAtOnce(): void
    {
        $manager = $this->manager();
        $session = $this->resolved($manager, $this->session());
        $manager->createWithId($session->getId())->get(self::QUEUE, []);
        self::assertSame([], $manager->createWithId($session->getId())->get(self::PENDING, []));

        $answered = $this->ask($session, 60);
        $this->ask($session, 60);
        $this->answer($session->getId(), $answered);
        $manager->createWithId($session->getId())->get(self::QUEUE, []);
        self::assertCount(2, $manager->createWithId($session->getId())->get(self::PENDING, []));
    }

    public function testASleepingLookWakesForTheAnswerOfAnotherProcess(): void
    {
        $manager = $this->manager();
        $session = $this->resolved($manager, $this->session());
        $asked = $this->ask($session, 60);
        $child = Child::start(
            'usleep(100000); $store->openSession($args[0])->deliverResponse((int) $args[1], ["id" => (int) $args[1]]);',
            $this->dsn(),
            (string) $session->getId(),
            (string) $asked,
        );
        $manager->createWithId($session->getId())->get(self::QUEUE, []);
        $manager->createWithId($session->getId())->get(self::PENDING, []);
        self::assertSame(['id' => $asked], $manager->createWithId($session->getId())->get("_mcp.responses.$asked"));
        self::assertSame(0, $child->end());
    }

    public function testASleepingLookRunsWhatWasAskedForAndEndsWhenThatThrows(): void
    {
        $manager = $this->manager();
        $session = $this->resolved($manager, $this->session());
        $this->ask($session, 60);
        $manager->createWithId($session->getId())->get(self::QUEUE, []);
        $manager->whileWaiting(static fn () => throw new \UnexpectedValueException('the client is gone'));
        $this->expectExceptionMessage('the client is gone');
        $manager->createWithId($session->getId())->get(self::PENDING, []);
    }

    public function testNothingSleepsOnStdio(): void
    {
        $manager = $this->manager(scope: new Stdio());
        $manager->gc();
        $session = $manager->create();
        $this->ask($session, 1);
        $manager->createWithId($session->getId())->get(self::QUEUE, []);
        $entries = $manager->createWithId($session->getId())->get(self::PENDING, []);
        self::assertSame([false], \array_values(self::timedOut($entries)));
    }
}
