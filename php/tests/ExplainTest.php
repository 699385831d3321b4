<?php

declare(strict_types=1);

namespace McpState\Tests;

use McpState\Exception\SessionNotFound;
use McpState\LateReason;
use McpState\PendingStatus;
use McpState\Store;
use McpState\Tests\Support\Child;
use McpState\Tests\Support\SharedMemory;
use McpState\Tests\Support\StoreTestCase;

/**
 * Start here: these tests explain the purpose of mcp-state.
 *
 * Many PHP processes serve one MCP session at the same time. Each request has its own process, and the client's answer
 * to a question arrives in another process. The processes share the state of the session. `Child::start()` starts
 * another process, whose code finds the same store in `$store`.
 */
final class ExplainTest extends StoreTestCase
{
    use SharedMemory;

    /** All processes share the store and read the writes of the others at once. */
    public function testAllProcessesSeeOneSession(): void
    {
        $session = Store::open(self::dsn())->createSession();
        $session->set('client_info.name', 'inspector');

        $child = Child::start(
            <<<'PHP'
                $session = $store->openSession($args[0]);
                say($session->get('client_info.name'));
                $session->set('client_info.version', '1.0');
                PHP,
            self::dsn(),
            $session->id,
        );

        self::assertSame('inspector', $child->hear());
        self::assertSame(0, $child->end());
        self::assertSame(['name' => 'inspector', 'version' => '1.0'], $session->get('client_info'));
    }

    /** A session in one JSON document would lose updates here, because each process writes back what it has read. */
    public function testParallelUpdatesAreNotLost(): void
    {
        $session = Store::open(self::dsn())->createSession();
        $code = <<<'PHP'
            $session = $store->openSession($args[0]);
            say('ready');
            hear();
            for ($i = 0; $i < 50; ++$i) {
                $session->set("mine.$args[1].$i", true);
                $session->update('total', fn (?int $n) => $n + 1);
            }
            PHP;
        $children = [];

        foreach (['a', 'b', 'c', 'd'] as $name) {
            $children[] = $child = Child::start($code, self::dsn(), $session->id, $name);
            $child->hear();
        }

        foreach ($children as $child) {
            $child->say('go');
        }

        foreach ($children as $child) {
            self::assertSame(0, $child->end());
        }

        self::assertSame(200, $session->get('total'));
        self::assertSame([50, 50, 50, 50], \array_map('count', \array_values($session->get('mine'))));
    }

    /**
     * A tool asks the client a question. The question goes out on the stream of the tool. The answer arrives as another
     * request in another process, and wakes the tool.
     */
    public function testAnAnswerArrivesInAnotherProcess(): void
    {
        $session = Store::open(self::dsn())->createSession();

        // In the process of the tool, the owner represents the stream that the process serves.
        $stream = $session->attach();
        $question = $stream->sendRequest(['jsonrpc' => '2.0', 'method' => 'elicitation/create']);
        $sent = $stream->takeOutgoing()[0]->body;
        self::assertStringContainsString("\"id\":{$question->id}", $sent);

        // The process of the answer knows only the id of the session and the message of the client.
        $answering = Child::start(
            <<<'PHP'
                [$id, $answer] = $args;
                $answer = json_decode($answer, true);
                $delivery = $store->openSession($id)->deliverResponse($answer['id'], $answer);
                say($delivery->delivered ? 'delivered' : 'late: ' . $delivery->reason->name);
                PHP,
            self::dsn(),
            $session->id,
            \json_encode(['jsonrpc' => '2.0', 'id' => $question->id, 'result' => ['action' => 'accept']]),
        );

        // The tool sleeps until the answer arrives, and receives it once.
        $claim = $question->await();
        self::assertTrue($claim->isAnswered());
        self::assertSame('accept', $claim->json()['result']['action']);
        self::assertSame('delivered', $answering->hear());
        self::assertSame(PendingStatus::Unknown, $question->claim()->status);
    }

    /** Two tools ask at the same time. Neither can receive the other's answer, in any order of the answers. */
    public function testEachStreamGetsItsOwnAnswer(): void
    {
        $session = Store::open(self::dsn())->createSession();
        $tool = <<<'PHP'
            $stream = $store->openSession($args[0])->attach();
            $question = $stream->sendRequest(['method' => 'ask', 'params' => [$args[1]]]);
            say($stream->takeOutgoing()[0]->body);
            say($question->await()->payload);
            PHP;
        $one = Child::start($tool, self::dsn(), $session->id, 'one');
        $two = Child::start($tool, self::dsn(), $session->id, 'two');
        $idOfOne = \json_decode($one->hear())->id;
        $idOfTwo = \json_decode($two->hear())->id;

        self::assertNotSame($idOfOne, $idOfTwo);
        $session->deliverResponse($idOfTwo, '"for two"');
        $session->deliverResponse($idOfOne, '"for one"');
        self::assertSame('"for one"', $one->hear());
        self::assertSame('"for two"', $two->hear());
    }

    /** The store discards a late answer, reports the reason, and never delivers the answer to the next question. */
    public function testALateAnswerReachesNobody(): void
    {
        $session = Store::open(self::dsn())->createSession();
        $stream = $session->attach();
        $expired = $stream->sendRequest(['method' => 'ask'], timeoutMs: 1);
        self::assertSame(PendingStatus::TimedOut, $expired->await()->status);

        $next = $stream->sendRequest(['method' => 'ask']);
        self::assertSame(LateReason::TimedOut, $session->deliverResponse($expired->id, '"too late"')->reason);
        self::assertSame(PendingStatus::Waiting, $next->claim()->status);
        $session->deliverResponse($next->id, '"in time"');
        self::assertSame('"in time"', $next->await()->payload);
    }

    /** A worker is killed while its tool waits. Its answer is late at once, and no other process is affected. */
    public function testAKilledProcessLeavesNothingBehind(): void
    {
        $session = Store::open(self::dsn())->createSession();
        $worker = Child::start(
            <<<'PHP'
                $stream = $store->openSession($args[0])->attach(leaseMs: 1);
                $question = $stream->sendRequest(['method' => 'ask']);
                say($question->id);
                $question->await();
                PHP,
            self::dsn(),
            $session->id,
        );
        $id = (int) $worker->hear();
        $worker->kill();

        self::assertSame(LateReason::Abandoned, $session->deliverResponse($id, '{}')->reason);
        self::assertSame([], $session->allPending());
    }

    /** The client deletes the session while a tool waits. The tool gets an error, and nothing restores the session. */
    public function testADestroyedSessionStaysGone(): void
    {
        $store = Store::open(self::dsn());
        $session = $store->createSession();
        $tool = Child::start(
            <<<'PHP'
                $session = $store->openSession($args[0]);
                $question = $session->attach()->sendRequest(['method' => 'ask']);
                say('waiting');
                try {
                    $question->await();
                } catch (Exception\SessionNotFound) {
                    say('gone');
                }
                try {
                    $session->set('result', 42);
                } catch (Exception\SessionNotFound) {
                    say('still gone');
                }
                PHP,
            self::dsn(),
            $session->id,
        );
        self::assertSame('waiting', $tool->hear());
        self::assertTrue($session->destroy());

        self::assertSame('gone', $tool->hear());
        self::assertSame('still gone', $tool->hear());
        self::assertNull($store->openSession($session->id));
        self::assertThrows(SessionNotFound::class, static fn () => $session->get('result'));
    }
}
