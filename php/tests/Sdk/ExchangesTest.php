<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk;

use McpState\Exception\StoreUnavailable;
use McpState\OwnerKind;
use McpState\Sdk\Scope\ContextKeyed;
use McpState\Sdk\Scope\SequentialWorker;
use McpState\Sdk\Scope\Stdio;
use McpState\Sdk\SessionManager;
use McpState\Tests\Sdk\Support\SdkTestCase;
use Symfony\Component\Uid\Uuid;

/** The beginning and end of an exchange, the messages it may deliver, and the loss of its session or store. */
final class ExchangesTest extends SdkTestCase
{
    public function testOnlyCreateMakesASession(): void
    {
        $manager = $this->manager();
        $manager->gc();
        $unknown = Uuid::v4();
        self::assertFalse($manager->exists($unknown));
        $session = $manager->createWithId($unknown);
        $session->set('a', 1);
        self::assertFalse($session->save());
        self::assertNull($session->get('b'));
        self::assertFalse($manager->exists($unknown));
        $created = $manager->create();
        self::assertTrue($this->manager()->exists($created->getId()), 'the session is in the store before it is saved');
    }

    public function testADestroyedSessionStaysDestroyedWhoeverStillSaves(): void
    {
        $id = $this->session();
        $manager = $this->manager();
        $handler = $this->resolved($manager, $id);
        $asked = $this->ask($handler);
        $handler->set('a', 1);
        self::assertTrue($this->manager()->destroy($id));
        self::assertFalse($this->manager()->destroy($id));
        self::assertFalse($handler->save());
        self::assertFalse($this->manager()->exists($id));

        // The loop receives an error for the question, and neither sleeps nor throws.
        $manager->createWithId($id)->get(self::QUEUE, []);
        self::assertSame([$asked], \array_keys($manager->createWithId($id)->get(self::PENDING, [])));
        $error = $manager->createWithId($id)->get("_mcp.responses.$asked");
        self::assertStringContainsString('the session has ended', $error['error']['message']);
        $loop = $manager->createWithId($id);
        $loop->get(self::PENDING, []);
        $loop->set(self::PENDING, []);
        self::assertFalse($loop->save());
        self::assertSame([], $manager->createWithId($id)->get(self::PENDING, []));
        self::assertFalse($this->manager()->exists($id));
    }

    public function testAQuestionToADestroyedSessionIsAnsweredWithAnError(): void
    {
        $id = $this->session();
        $manager = $this->manager();
        $handler = $this->resolved($manager, $id);
        $this->manager()->destroy($id);
        $asked = $this->ask($handler);
        self::assertSame([], $manager->createWithId($id)->get(self::QUEUE, []));
        $error = $manager->createWithId($id)->get("_mcp.responses.$asked");
        self::assertStringContainsString('the session has ended', $error['error']['message']);
    }

    public function testAStoreThatCannotBeAskedIsNeverASessionThatDoesNotExist(): void
    {
        $manager = new SessionManager(
            static fn () => throw new StoreUnavailable('no such device'),
            logger: $this->log,
        );
        $manager->gc();
        $isThrown = false;

        try {
            $manager->exists(Uuid::v4());
        } catch (\Throwable $e) {
            $isThrown = true;
            self::assertSame('no such device', $e->getMessage());
        }

        self::assertTrue($isThrown);
        self::assertTrue($this->log->has('error mcp-state: cannot find a session: no such device'));
        self::assertFalse($manager->createWithId(Uuid::v4())->save(), 'the loop receives false and no exception');
    }

    public function testAMessageFromAnotherProcessGoesToTheNextStreamAndNeverIntoAJsonReply(): void
    {
        $id = $this->session();

        // A queue worker serves no exchange.
        $worker = $this->manager();
        self::assertTrue($worker->exists($id));
        $outside = $worker->createWithId($id);
        $this->queue($outside, 'hello');
        self::assertSame([], $this->manager()->createWithId($id)->get(self::QUEUE, []), 'nothing before save()');
        self::assertTrue($outside->save());

        // A JSON reply reads the queue once, after the handler.
        $reply = $this->manager();
        $this->queue($this->resolved($reply, $id), 'response');
        self::assertSame([self::row('response')], $reply->createWithId($id)->get(self::QUEUE, []));

        // A stream reads it in each turn.
        $stream = $this->manager();
        $this->queue($this->resolved($stream, $id), 'progress');
        $turn = $stream->createWithId($id);
        self::assertSame([self::row('progress')], $turn->get(self::QUEUE, []));
        $turn->set(self::QUEUE, []);
        $stream->createWithId($id)->get(self::PENDING, []);
        $turn = $stream->createWithId($id);
        self::assertSame([self::row('hello')], $turn->get(self::QUEUE, []));
        $turn->set(self::QUEUE, []);
        self::assertSame([], $stream->createWithId($id)->get(self::QUEUE, []));
    }

    public function testAMessageToAnotherSessionThanTheOneServedIsForItsStreams(): void
    {
        $other = $this->session();
        $manager = $this->manager();
        $this->resolved($manager, $this->session());
        $session = $manager->createWithId($other);
        $this->queue($session, 'psst');
        self::assertTrue($session->save());
        $owner = $this->store()->openSession((string) $other)?->attach(OwnerKind::Stream);
        self::assertSame('psst', $owner?->takeOutgoing()[0]->body);
    }

    public function testASleepingStreamWakesForABroadcast(): void
    {
        $manager = $this->manager();
        $session = $this->resolved($manager, $this->session());
        $this->ask($session, 60);
        $manager->createWithId($session->getId())->get(self::QUEUE, []);
        $this->store()->openSession((string) $session->getId())?->enqueueBroadcast('hello');
        $manager->createWithId($session->getId())->get(self::PENDING, []);
        $messages = \array_column($manager->createWithId($session->getId())->get(self::QUEUE, []), 'message');
        self::assertContains('hello', $messages);
    }

    public function testMessagesQueuedAfterTheLastFlushGoWithTheirExchange(): void
    {
        $manager = $this->manager(scope: new SequentialWorker());
        $id = $this->session();
        $this->queue($this->resolved($manager, $id), 'too late');
        self::assertSame([], $this->next($manager, $id)->get(self::QUEUE, []));
        self::assertTrue($this->log->has('dropped 1 messages that were queued after the last reply'));
    }

    public function testInAWorkerEachExchangeHasItsOwnOwner(): void
    {
        $manager = $this->manager(scope: new SequentialWorker(), blocking: false);
        $id = $this->session();
        $asked = $this->ask($this->resolved($manager, $id));
        $next = $this->resolved($manager, $id);
        self::assertSame([], $manager->createWithId($id)->get(self::PENDING, []));
        $next->set("_mcp.responses.$asked", self::response($asked));
        self::assertTrue($this->log->has("request $asked is discarded: Abandoned"));
    }

    public function testOnStdioTheAnswerIsTheNextMessageOfTheSameExchange(): void
    {
        $manager = $this->manager(scope: new Stdio());
        $manager->gc();
        $id = $manager->create()->getId();
        $asked = $this->ask($this->resolved($manager, $id));
        $answer = $this->resolved($manager, $id);
        $answer->set("_mcp.responses.$asked", self::response($asked, 'here'));
        $answer->save();
        self::assertSame([$asked], \array_keys($manager->createWithId($id)->get(self::PENDING, [])));
        self::assertSame(self::response($asked, 'here'), $manager->createWithId($id)->get("_mcp.responses.$asked"));
    }

    public function testInterleavedContextsKeepTheirOwnExchanges(): void
    {
        $context = null;
        $manager = $this->manager(scope: new ContextKeyed(static function () use (&$context): object {
            return $context;
        }));
        [$one, $other] = [new \stdClass(), new \stdClass()];
        $id = $this->session();
        $context = $one;
        $manager->gc();
        $manager->exists($id);
        $context = $other;
        $manager->gc();
        $manager->exists($id);
        $context = $one;
        $first = $this->ask($manager->createWithId($id));
        $context = $other;
        $second = $this->ask($manager->createWithId($id));
        self::assertSame([$second], \array_keys($manager->createWithId($id)->get(self::PENDING, [])));
        $context = $one;
        self::assertSame([$first], \array_keys($manager->createWithId($id)->get(self::PENDING, [])));

        // An exchange ends with its context.
        $context = $other;
        unset($one);
        $ids = \array_column($this->store()->openSession((string) $id)?->allPending() ?? [], 'id');
        self::assertSame([$second], $ids);
    }

    public function testAProcessThatWritesToManySessionsHoldsOnToNone(): void
    {
        $worker = $this->manager();
        $ids = \array_map(fn (): Uuid => $this->session(ttl: 100), [1, 2, 3]);

        foreach ($ids as $id) {
            $session = $worker->createWithId($id);
            $session->set('a', 1);
            $this->queue($session, 'hello');
            self::assertTrue($session->save());
        }

        foreach ($ids as $id) {
            self::eventually(fn (): bool => !$this->manager()->exists($id));
        }
    }

    /** @dataProvider generations */
    public function testAWorkerServesOneExchangeAfterAnotherWithOneManager(string $generation): void
    {
        $manager = $this->manager(scope: new SequentialWorker(), blocking: false);
        $post = static fn (array $message, ?string $id): Double\Reply => (new $generation($manager, Double\Tools::all()))
            ->post(\json_encode(['jsonrpc' => '2.0'] + $message), $id);
        $id = $post(['id' => 0, 'method' => 'initialize'], null)->sessionId;

        foreach ([1, 2, 3] as $n) {
            $echo = ['id' => $n, 'method' => 'tools/call', 'params' => ['name' => 'echo', 'arguments' => ['sentinel' => "e$n"]]];
            $text = $post($echo, $id)->messages()[0]['result']['content'][0]['text'];
            self::assertSame("e$n", $text);

            // The other worker of the pool delivers the answer.
            $server = new $generation($manager, Double\Tools::all());
            $ask = ['id' => $n, 'method' => 'tools/call', 'params' => ['name' => 'ask', 'arguments' => ['sentinel' => "q$n"]]];
            $stream = $server->post(\json_encode(['jsonrpc' => '2.0'] + $ask), $id);
            $server->sleep = function () use ($id): void {
                foreach ($this->store()->openSession((string) $id)?->allPending() ?? [] as $info) {
                    $this->store()->openSession((string) $id)?->deliverResponse(
                        $info->id,
                        ['id' => $info->id, 'result' => ['content' => ['answer' => 'yes']]],
                    );
                }
            };
            $messages = $stream->messages();
            self::assertSame('yes', \end($messages)['result']['content'][0]['text']);
        }
    }

    /** @return iterable<string, array{class-string<Double\Server>}> */
    public function generations(): iterable
    {
        yield 'up to 0.8' => [Double\Server08::class];
        yield 'from 0.9' => [Double\Server09::class];
    }

    public function testReleaseEndsTheExchangeAtOnce(): void
    {
        $manager = $this->manager(scope: new ContextKeyed(static fn (): string => 'only'));
        $id = $this->session();
        $this->ask($this->resolved($manager, $id));
        $manager->release();
        self::assertSame([], $this->store()->openSession((string) $id)?->allPending());
    }

    public function testTheEndOfTheManagerEndsItsExchange(): void
    {
        $manager = $this->manager();
        $id = $this->session();
        $session = $this->resolved($manager, $id);
        $this->ask($session);
        unset($manager, $session);
        self::assertSame([], $this->store()->openSession((string) $id)?->allPending());
    }

    public function testAPlainCallAttachesNoOwner(): void
    {
        $id = $this->session();
        $manager = $this->manager();
        $session = $this->resolved($manager, $id);
        $this->queue($session, 'response');
        $session->save();
        $loop = $manager->createWithId($id);
        $loop->get(self::QUEUE, []);
        $loop->set(self::QUEUE, []);
        $loop->save();
        $stats = $this->store()->openSession((string) $id)?->stats() ?? [];
        self::assertSame([0, 0], [$stats['owners'], $stats['exchanges']]);
    }

    public function testAnOpenStreamKeepsItsSessionPastItsTimeToLive(): void
    {
        $idle = $this->session(ttl: 100);
        $busy = $this->session(ttl: 100);
        $manager = $this->manager();
        $this->ask($this->resolved($manager, $busy));
        self::eventually(fn (): bool => !$this->manager()->exists($idle));
        self::assertTrue($this->manager()->exists($busy));
        $manager->release();
        self::eventually(fn (): bool => !$this->manager()->exists($busy));
    }

    public function testASessionIsThereOnlyForThePrincipalThatOpenedIt(): void
    {
        $id = $this->session(principal: 'alice');
        self::assertTrue($this->manager(principal: static fn (): string => 'alice')->exists($id));
        self::assertFalse($this->manager(principal: 'bob')->exists($id));
        self::assertFalse($this->manager()->exists($id));
        self::assertFalse($this->manager(principal: 'bob')->destroy($id));
        self::assertNull($this->manager(principal: 'bob')->createWithId($id)->get('a'));
        $manager = $this->manager(principal: 'bob');
        $manager->actFor('alice');
        self::assertTrue($manager->exists($id));
    }

    public function testASettingThatMakesNoSenseIsRefused(): void
    {
        $this->expectExceptionMessage('a maxWaiting of 0 is not valid');
        $this->manager(maxWaiting: 0);
    }

    /** Begins the next exchange of a worker, and returns the session object of its loop. */
    private function next(SessionManager $manager, Uuid $id): \McpState\Sdk\Session
    {
        $this->resolved($manager, $id);

        return $manager->createWithId($id);
    }
}
