<?php

declare(strict_types=1);

namespace McpState\Tests\Guarantees;

use McpState\CancelOutcome;
use McpState\Exception\OwnerExpired;
use McpState\Exception\SessionNotFound;
use McpState\Interest;
use McpState\LateReason;
use McpState\PendingStatus;
use McpState\Tests\Support\Child;
use McpState\Tests\Support\SharedMemory;
use McpState\Tests\Support\StoreTestCase;
use McpState\WaitStatus;

/**
 * The guarantees of docs/design.md, section 3, between processes. The contract tests them within one process.
 */
final class GuaranteesTest extends StoreTestCase
{
    use SharedMemory;

    /**
     * Starts $code in $count processes, which all continue from their `hear()` at the same moment.
     *
     * @return list<Child>
     */
    private static function race(int $count, string $code, string ...$args): array
    {
        $children = [];

        for ($i = 0; $i < $count; ++$i) {
            $children[] = $child = Child::start("\$me = $i; say('ready'); hear(); $code", self::dsn(), ...$args);
        }

        foreach ($children as $child) {
            self::assertSame('ready', $child->hear());
        }

        foreach ($children as $child) {
            $child->say('go');
        }

        return $children;
    }

    /** @param list<Child> $children */
    private static function assertAllEndWell(array $children): void
    {
        foreach ($children as $child) {
            self::assertSame(0, $child->end());
        }
    }

    public function testG1NoUpdateIsLost(): void
    {
        $session = $this->createSession();
        self::assertAllEndWell(self::race(4, <<<'PHP'
            $session = $store->openSession($args[0]);
            for ($i = 0; $i < 100; ++$i) {
                $session->update('counter', fn (?int $n) => $n + 1);
                $session->set("writer$me", $i);
                $session->patch(["patch.$me.$i" => $i], ["none$me"]);
                $session->update('list', fn (?array $list) => [...$list ?? [], "$me.$i"]);
            }
            PHP, $session->id));

        self::assertSame(400, $session->get('counter'));
        self::assertCount(400, \array_unique($session->get('list')));

        for ($me = 0; $me < 4; ++$me) {
            self::assertSame(99, $session->get("writer$me"));
            self::assertCount(100, $session->get("patch.$me"));
        }
    }

    public function testG1AValueIsTakenOrPutByOneOfMany(): void
    {
        $session = $this->createSession();

        for ($i = 0; $i < 100; ++$i) {
            $session->set("take.$i", $i);
        }

        $children = self::race(4, <<<'PHP'
            $session = $store->openSession($args[0]);
            $taken = $put = 0;
            for ($i = 0; $i < 100; ++$i) {
                $taken += $session->take("take.$i") === $i ? 1 : 0;
                $put += $session->putIfAbsent("put.$i", $me) ? 1 : 0;
            }
            say("$taken $put");
            PHP, $session->id);
        $taken = $put = 0;

        foreach ($children as $child) {
            \sscanf($child->hear(), '%d %d', $t, $p);
            $taken += $t;
            $put += $p;
        }

        self::assertSame([100, 100], [$taken, $put]);
    }

    public function testG2AnAnswerIsDeliveredOnce(): void
    {
        $owner = $this->createOwner();
        $requests = [];

        for ($i = 0; $i < 50; ++$i) {
            $requests[] = $owner->sendRequest(['method' => 'ask']);
        }

        $children = self::race(3, <<<'PHP'
            $session = $store->openSession(array_shift($args));
            $delivered = [];
            foreach ($args as $id) {
                if ($session->deliverResponse((int) $id, "\"$me\"")->delivered) {
                    $delivered[] = $id;
                }
            }
            say(implode(' ', $delivered));
            PHP, $owner->session->id, ...\array_map('strval', \array_column($requests, 'id')));
        $deliveredBy = [];

        foreach ($children as $me => $child) {
            foreach (\array_filter(\explode(' ', $child->hear())) as $id) {
                self::assertArrayNotHasKey($id, $deliveredBy);
                $deliveredBy[$id] = $me;
            }
        }

        self::assertCount(50, $deliveredBy);

        foreach ($requests as $request) {
            self::assertClaim(PendingStatus::Answered, "\"{$deliveredBy[$request->id]}\"", $request->claim());
        }
    }

    public function testG2AnsweredOrTimedOutButNeverBoth(): void
    {
        $owner = $this->createOwner();
        $child = Child::start(<<<'PHP'
            $session = $store->openSession($args[0]);
            say('ready');
            while (is_numeric($id = hear())) {
                usleep(random_int(0, 4000));
                say($session->deliverResponse((int) $id, '{}')->reason?->name ?? 'delivered');
            }
            PHP, self::dsn(), $owner->session->id);
        $child->hear();

        for ($i = 0; $i < 100; ++$i) {
            $request = $owner->sendRequest(['method' => 'ask'], 3);
            $owner->takeOutgoing();
            $child->say((string) $request->id);
            $status = $request->await()->status;

            self::assertSame($status === PendingStatus::Answered ? 'delivered' : 'TimedOut', $child->hear());
            self::assertContains($status, [PendingStatus::Answered, PendingStatus::TimedOut]);
        }
    }

    public function testG3EachOwnerGetsItsOwnMessagesAndAnswers(): void
    {
        $session = $this->createSession();
        $children = self::race(4, <<<'PHP'
            $owner = $store->openSession($args[0])->attach();
            $got = [];
            for ($i = 0; $i < 30; ++$i) {
                $owner->enqueueOutgoing("\"$me.$i\"");
                $question = $owner->sendRequest(['method' => "ask.$me.$i"]);
                foreach ($owner->takeOutgoing() as $message) {
                    $got[] = preg_match("/\"(ask\.)?$me\.$i\"/", $message->body);
                }
                say($question->id . " $me.$i");
                $got[] = $question->await()->payload === "\"$me.$i\"" ? 1 : 0;
            }
            say('right ' . array_sum($got));
            PHP, $session->id);

        for ($i = 0; $i < 30; ++$i) {
            foreach (\array_reverse($children) as $child) {
                [$id, $answer] = \explode(' ', $child->hear());
                self::assertTrue($session->deliverResponse((int) $id, "\"$answer\"")->delivered);
            }
        }

        foreach ($children as $child) {
            self::assertSame('right 90', $child->hear());
        }
    }

    public function testG4AnAnswerToADeadProcessReachesNobody(): void
    {
        $session = $this->createSession();
        $mine = $session->attach()->sendRequest(['method' => 'ask']);
        $child = Child::start(<<<'PHP'
            $question = $store->openSession($args[0])->attach(leaseMs: 1)->sendRequest(['method' => 'ask']);
            say($question->id);
            hear();
            PHP, self::dsn(), $session->id);
        $id = (int) $child->hear();
        $child->kill();

        self::assertSame(LateReason::Abandoned, $session->deliverResponse($id, '"theirs"')->reason);
        self::assertSame(PendingStatus::Waiting, $mine->claim()->status);
        $session->deliverResponse($mine->id, '"mine"');
        self::assertSame('"mine"', $mine->await()->payload);
    }

    public function testG5IdsAreUniqueAcrossProcesses(): void
    {
        $session = $this->createSession();
        $children = self::race(4, <<<'PHP'
            $session = $store->openSession($args[0]);
            $owner = $session->attach();
            $ids = [];
            for ($i = 0; $i < 100; ++$i) {
                $ids[] = $session->nextRequestId();
                $ids[] = $owner->sendRequest(['method' => 'm'], 1)->id;
                $owner->takeOutgoing();
                $owner->pendingRequest(end($ids))->cancel();
                $owner->claimAny();
            }
            say(implode(' ', $ids));
            PHP, $session->id);
        $ids = [];

        foreach ($children as $child) {
            \array_push($ids, ...\explode(' ', $child->hear()));
        }

        self::assertCount(800, \array_unique($ids));
    }

    public function testG6EqualIdsInFlightKeepTheirOwnAnswers(): void
    {
        $session = $this->createSession();
        $children = self::race(4, <<<'PHP'
            $wrong = 0;
            for ($i = 0; $i < 50; ++$i) {
                $owner = $store->openSession($args[0])->attach(OwnerKind::Reply);
                $wrong += $owner->beginRequest(1) ? 0 : 1;
                $owner->enqueueOutgoing(['id' => 1, 'result' => "$me.$i"]);
                $messages = $owner->takeOutgoing();
                $wrong += count($messages) === 1 && str_contains($messages[0]->body, "\"$me.$i\"") ? 0 : 1;
                $wrong += $owner->finishRequest(1) === false ? 0 : 1;
                $owner->detach();
            }
            say("wrong $wrong");
            PHP, $session->id);

        foreach ($children as $child) {
            self::assertSame('wrong 0', $child->hear());
        }
    }

    public function testG6RejectLetsOneOfManyIn(): void
    {
        $session = $this->createSession();
        $children = self::race(4, <<<'PHP'
            $owner = $store->openSession($args[0])->attach();
            say($owner->beginRequest('id', DuplicatePolicy::Reject) ? 'in' : 'out');
            hear();
            PHP, $session->id);
        $answers = \array_map(static fn (Child $child) => $child->hear(), $children);
        \sort($answers);

        self::assertSame(['in', 'out', 'out', 'out'], $answers);
    }

    public function testG7WritersDoNotBringADestroyedSessionBack(): void
    {
        $store = $this->createStore();
        $session = $store->createSession();
        $children = self::race(3, <<<'PHP'
            $session = $store->openSession($args[0]);
            try {
                $owner = $session->attach();
                say('writing');
                for ($i = 0;; ++$i) {
                    $session->set('k', $i);
                    $owner->enqueueOutgoing('{}');
                    $owner->takeOutgoing();
                    $session->touch() || $session->get('k');
                }
            } catch (Exception\SessionNotFound) {
                say('gone');
            }
            PHP, $session->id);

        foreach ($children as $child) {
            self::assertSame('writing', $child->hear());
        }

        self::assertTrue($session->destroy());
        $second = $store->createSession($session->id);

        foreach ($children as $child) {
            self::assertSame('gone', $child->hear());
            self::assertSame(0, $child->end());
        }

        self::assertSame([], $second->all());
        self::assertThrows(SessionNotFound::class, static fn () => $session->get('k'));
    }

    public function testG8AKilledWriterLeavesWholeOperationsAndBlocksNobody(): void
    {
        $session = $this->createSession();

        for ($round = 0; $round < 15; ++$round) {
            $child = Child::start(<<<'PHP'
                $session = $store->openSession($args[0]);
                say('writing');
                for ($i = 0;; ++$i) {
                    $x = str_repeat('x', $i % 3000);
                    $session->patch(["a.$args[1]" => $i, "b.$args[1]" => $x, "c.$args[1]" => $i]);
                }
                PHP, self::dsn(), $session->id, (string) $round);
            $child->hear();
            \usleep(\random_int(0, 10_000));
            $child->kill();

            $a = $session->get("a.$round");
            self::assertSame($a, $session->get("c.$round"), 'half a patch');
            self::assertSame(($a ?? 0) % 3000, \strlen($session->get("b.$round", '')), 'half a patch');
            $session->set('alive', $round);
        }

        self::assertSame(14, $session->get('alive'));
    }

    public function testG9AWaitEndsWhenTheAnswerComesAndNotAtTheNextCheck(): void
    {
        $session = $this->createSession();
        $child = Child::start(<<<'PHP'
            $owner = $store->openSession($args[0])->attach();
            for ($i = 0; $i < 5; ++$i) {
                $question = $owner->sendRequest(['method' => 'ask']);
                say($question->id);
                $claim = $question->await();
                say(hrtime(true) . ' ' . $claim->status->name);
            }
            PHP, self::dsn(), $session->id);
        $latencies = [];

        for ($i = 0; $i < 5; ++$i) {
            $id = (int) $child->hear();
            \usleep(50_000);
            $delivered = \hrtime(true);
            $session->deliverResponse($id, '{}');
            [$woken, $status] = \explode(' ', $child->hear());
            self::assertSame('Answered', $status);
            $latencies[] = ((int) $woken - $delivered) / 1e6;
        }

        // The recheck after a lost wake-up takes a second, so a shorter time proves that no wake-up was lost.
        self::assertLessThan(500, \min($latencies), 'milliseconds');
    }

    public function testG9MessagesBroadcastsCancellationsAndTheEndWakeAWaiter(): void
    {
        $session = $this->createSession();
        $child = Child::start(<<<'PHP'
            $owner = $store->openSession($args[0])->attach();
            $owner->beginRequest('rpc');
            say($owner->token);
            $after = 0;
            do {
                do {
                    $result = $owner->wait(1000, $after);
                    $after = $result->cursor;
                } while ($result->status === WaitStatus::Deadline);
                $messages = $result->status === WaitStatus::Ready ? $owner->takeOutgoing() : [];
                say(match (true) {
                    $messages !== [] => $messages[0]->body,
                    $result->status === WaitStatus::Ready => $owner->isCancelled('rpc') ? 'cancelled' : 'nothing',
                    default => $result->status->name,
                });
            } while ($result->status !== WaitStatus::Destroyed);
            PHP, self::dsn(), $session->id);
        $owner = $session->owner($child->hear());

        $owner->enqueueOutgoing('"message"');
        self::assertSame('"message"', $child->hear());
        $session->enqueueBroadcast('"broadcast"');
        self::assertSame('"broadcast"', $child->hear());
        $session->cancelRequest('rpc');
        self::assertSame('cancelled', $child->hear());
        $session->destroy();
        self::assertSame('Destroyed', $child->hear());
    }

    public function testG9ASignalEndsASliceAndNotTheWait(): void
    {
        $owner = $this->createOwner();
        $request = $owner->sendRequest(['method' => 'ask']);
        $signals = 0;
        $child = Child::start(<<<'PHP'
            say('ready');
            hear();
            for (;;) {
                usleep(20_000);
                posix_kill((int) $args[0], SIGUSR1);
            }
            PHP, self::dsn(), (string) \getmypid());
        $child->hear();
        \pcntl_async_signals(true);
        \pcntl_signal(\SIGUSR1, static function () use (&$signals): void {
            ++$signals;
        });
        $child->say('go');

        try {
            for ($i = 0; $i < 50; ++$i) {
                $status = $owner->wait(1000, 0, Interest::Message)->status;
                $owner->takeOutgoing();

                if ($status === WaitStatus::Interrupted) {
                    break;
                }
            }

            self::assertSame(WaitStatus::Interrupted, $status);
            $before = $signals;
            $request->await(onSlice: static function () use (&$signals, $before, $request): void {
                if ($signals >= $before + 3) {
                    $request->owner->session->deliverResponse($request->id, '{}');
                }
            });
            self::assertGreaterThanOrEqual($before + 3, $signals);
        } finally {
            $child->kill();
            \pcntl_signal(\SIGUSR1, \SIG_DFL);
            \pcntl_async_signals(false);
        }
    }

    public function testG9AReaderOfTheBusIsWokenByAnotherProcess(): void
    {
        $child = Child::start(<<<'PHP'
            say('ready');
            $cursor = 0;
            $numbers = [];
            while (count($numbers) < 300) {
                $store->waitSince('bus', $cursor, 1000);
                $entries = $store->since('bus', $cursor);
                $cursor = $entries->cursor;
                array_push($numbers, ...array_column($entries->messages, 'number'));
            }
            say($numbers === range($numbers[0], $numbers[0] + 299) ? 'all, in order' : 'not so');
            PHP, self::dsn());
        $child->hear();
        self::assertAllEndWell(self::race(3, <<<'PHP'
            for ($i = 0; $i < 100; ++$i) {
                $store->publish('bus', "$me.$i");
            }
            PHP));

        self::assertSame('all, in order', $child->hear());
    }

    public function testG10AFullQueueHoldsForAllProcessesTogether(): void
    {
        $session = $this->createSession('max_broadcasts=10');
        $children = [];

        for ($i = 0; $i < 3; ++$i) {
            $children[] = Child::start(<<<'PHP'
                $session = $store->openSession($args[0]);
                $queued = 0;
                try {
                    for (;; ++$queued) {
                        $session->enqueueBroadcast('{}');
                    }
                } catch (Exception\LimitExceeded) {
                    say($queued);
                }
                PHP, self::dsn('max_broadcasts=10'), $session->id);
        }

        self::assertSame(10, \array_sum(\array_map(static fn (Child $child) => (int) $child->hear(), $children)));
        self::assertCount(10, $session->attach()->takeOutgoing());
    }

    public function testG11WhatADeadProcessLeftIsReleasedWhenTheNextOwnerComes(): void
    {
        $session = $this->createSession('max_owners=1');
        $child = Child::start(<<<'PHP'
            $owner = $store->openSession($args[0])->attach(leaseMs: 1);
            $owner->beginRequest(1);
            $owner->enqueueOutgoing('"never sent"');
            $owner->sendRequest(['method' => 'ask']);
            say($owner->token);
            hear();
            PHP, self::dsn('max_owners=1'), $session->id);
        $token = $child->hear();
        $child->kill();

        $owner = $session->attach();
        self::assertSame([], $session->allPending());
        self::assertSame([], $owner->takeOutgoing());
        self::assertSame(CancelOutcome::Unknown, $session->cancelRequest(1));
        self::assertThrows(OwnerExpired::class, static fn () => $session->owner($token)->takeOutgoing());
    }

    public function testG11ASessionWhoseOnlyOwnerDiedExpiresAndIsCollected(): void
    {
        $store = $this->createStore('lease_ms=29998', fresh: true);
        $child = Child::start(<<<'PHP'
            $session = $store->createSession(ttlMs: 50);
            $session->attach(leaseMs: 1);
            say($session->id);
            hear();
            PHP, $store->dsn());
        $id = $child->hear();
        \usleep(100_000);
        self::assertNotNull($store->openSession($id), 'its owner lives');
        $child->kill();
        \usleep(100_000);

        self::assertNull($store->openSession($id));
        $collected = $store->collect();
        self::assertSame([1, 1, false], [$collected->sessions, $collected->owners, $collected->more]);
    }

    public function testG11TheOwnersOfAPhpRequestEndWithIt(): void
    {
        $session = $this->createSession();

        foreach (['', 'exit(3);', 'throw new \Exception("on purpose");', 'no_such_function();'] as $end) {
            $child = Child::start(<<<'PHP'
                ini_set('display_errors', '0');
                $request = $store->openSession($args[0])->attach()->sendRequest(['method' => 'ask']);
                say($request->id);
                PHP . "\n$end", self::dsn(), $session->id);
            $id = (int) $child->hear();
            $child->end();

            self::assertSame([], $session->allPending(), $end);
            self::assertSame(LateReason::Abandoned, $session->deliverResponse($id, '{}')->reason, $end);
        }
    }

    public function testG12APrincipalsSessionIsNotThereForOtherProcessesEither(): void
    {
        $id = $this->createStore()->createSession(principal: 'alice')->id;
        $child = Child::start(<<<'PHP'
            foreach ([null, 'bob', 'alice'] as $principal) {
                say($store->openSession($args[0], $principal) === null ? 'no' : 'yes');
            }
            PHP, self::dsn(), $id);

        self::assertSame(['no', 'no', 'yes'], [$child->hear(), $child->hear(), $child->hear()]);
    }

    public function testAStoreOpenedBeforeAForkWorksInParentAndChild(): void
    {
        $session = $this->createSession();
        $owner = $session->attach();
        $request = $owner->sendRequest(['method' => 'ask']);
        $pid = \pcntl_fork();

        if ($pid === 0) {
            // The child must not run PHPUnit's shutdown: it ends by a signal, whose number reports the result.
            try {
                $session->set('child', \getmypid());
                $right = $session->deliverResponse($request->id, '"from the child"')->delivered;
            } catch (\Throwable) {
                $right = false;
            }

            \posix_kill(\getmypid(), $right ? \SIGTERM : \SIGKILL);
        }

        self::assertSame('"from the child"', $request->await()->payload);
        \pcntl_waitpid($pid, $status);
        self::assertSame(\SIGTERM, \pcntl_wtermsig($status));
        self::assertSame($pid, $session->get('child'));
        $owner->renew();
    }

    public function testTheEndOfAForkedChildIsNotTheEndOfItsParentsOwners(): void
    {
        $session = $this->createSession();
        $child = Child::start(<<<'PHP'
            $owner = $store->openSession($args[0])->attach();
            $owner->enqueueOutgoing('"kept"');
            $pid = pcntl_fork();
            if ($pid === 0) {
                exit(0);
            }
            pcntl_waitpid($pid, $status);
            say($owner->takeOutgoing()[0]->body);
            PHP, self::dsn(), $session->id);

        self::assertSame('"kept"', $child->hear());
    }
}
