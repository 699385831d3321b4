<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk;

use McpState\Sdk\Middleware\RejectDuplicateRequests;
use McpState\Sdk\SessionManager;
use McpState\Store;
use McpState\Tests\Sdk\Double\Reply;
use McpState\Tests\Sdk\Double\Server;
use McpState\Tests\Sdk\Double\Server08;
use McpState\Tests\Sdk\Double\Server09;
use McpState\Tests\Sdk\Double\Tools;
use McpState\Tests\Sdk\Support\Handler;
use McpState\Tests\Sdk\Support\Psr7;
use McpState\Tests\Sdk\Support\SdkTestCase;
use McpState\Tests\Support\Child;
use Psr\Http\Message\ResponseInterface;
use Symfony\Component\Uid\Uuid;

/**
 * Whole exchanges on both generations of the SDK's double. One process serves the streams turn by turn, and the actions
 * of the client happen while the SDK sleeps.
 */
final class ConversationsTest extends SdkTestCase
{
    /** @return iterable<string, array{class-string<Server>}> */
    public function generations(): iterable
    {
        yield 'up to 0.8' => [Server08::class];
        yield 'from 0.9' => [Server09::class];
    }

    /** @dataProvider generations */
    public function testInitializeThenAPlainCall(string $generation): void
    {
        $session = $this->initialize($generation);
        $reply = $this->post($generation, $session, $this->toolCall(7, 'echo', ['sentinel' => 'hello']));
        self::assertSame([7, 'hello'], self::result($reply));
        $kept = \json_decode(self::result($this->post($generation, $session, $this->toolCall(8, 'recall')))[1], true);
        self::assertSame(['name' => 'client'], $kept['client_info']);
        self::assertSame(['elicitation' => []], $kept['client_capabilities']);
    }

    /** @dataProvider generations */
    public function testTwoParallelQuestionsEachGetTheirOwnAnswer(string $generation): void
    {
        $session = $this->initialize($generation);
        $first = $this->post($generation, $session, $this->toolCall(1, 'ask', ['sentinel' => 'A']), $one);
        $second = $this->post($generation, $session, $this->toolCall(1, 'ask', ['sentinel' => 'B']), $other);
        $questions = [];
        $one->sleep = function () use ($generation, $session, $second, $other, &$questions): void {
            $other->sleep = function () use ($generation, $session, &$questions): void {
                $this->answerAll($generation, $session, $questions);
            };
            self::assertSame([1, 'to B'], self::result($second, $questions));
        };
        self::assertSame([1, 'to A'], self::result($first, $questions));
    }

    /** @dataProvider generations */
    public function testAQuestionTimesOutAndTheNextOneOfTheSameCallIsAnswered(string $generation): void
    {
        $session = $this->initialize($generation);
        $tools = ['twice' => static function (Double\Context $context): string {
            try {
                $context->elicit('first', 0);
            } catch (\RuntimeException $e) {
                $context->progress(1, 2);

                return $e->getMessage() . ', then ' . $context->elicit('second', 60);
            }

            return 'answered';
        }];
        $call = $this->toolCall(1, 'twice', [], ['progressToken' => 5]);
        $stream = $this->post($generation, $session, $call, $server, tools: $tools);
        $questions = [];
        $server->sleep = function () use ($generation, $session, &$questions): void {
            // The late answer to the first question is refused; the second question receives its answer.
            $this->answerAll($generation, $session, $questions);
        };
        self::assertSame([1, 'Request timed out, then to second'], self::result($stream, $questions));
        self::assertTrue($this->log->has('is discarded: ') || $generation === Server09::class);
    }

    /** @dataProvider generations */
    public function testProgressIsWrittenOnItsOwnStreamInOrder(string $generation): void
    {
        $session = $this->initialize($generation);
        $call = $this->toolCall(1, 'count', ['n' => 3], ['progressToken' => 'p']);
        $messages = $this->post($generation, $session, $call)->messages();
        $steps = \array_column(\array_column(\array_slice($messages, 0, 3), 'params'), 'progress');
        self::assertSame([1, 2, 3], $steps);
        self::assertSame(['p'], \array_unique(\array_column(\array_column(\array_slice($messages, 0, 3), 'params'), 'progressToken')));
        self::assertSame('counted to 3', $messages[3]['result']['content'][0]['text']);
    }

    /** @dataProvider generations */
    public function testDeletingTheSessionEndsTheWaitingCallWithAnErrorAndTheSessionForGood(string $generation): void
    {
        $session = $this->initialize($generation);
        $stream = $this->post($generation, $session, $this->toolCall(1, 'ask', ['sentinel' => 'A']), $server);
        $server->sleep = fn () => $this->server($generation)->delete($session);
        $messages = $stream->messages();
        self::assertStringContainsString('the session has ended', \json_encode(\end($messages)));
        self::assertSame(404, $this->post($generation, $session, ['id' => 2, 'method' => 'ping'])->status);
    }

    /** @dataProvider generations */
    public function testAnAskThatCannotBeSavedLeavesNothingBehind(string $generation): void
    {
        $session = $this->initialize($generation);
        $tools = ['vanish' => function (Double\Context $context) use ($session): string {
            $this->store()->destroySession($session);

            return $context->elicit('anybody?');
        }];
        $reply = $this->post($generation, $session, $this->toolCall(1, 'vanish'), tools: $tools);
        $messages = $reply->messages();
        self::assertCount(1, $messages, 'the question is not sent');
        self::assertTrue(isset($messages[0]['error']) || ($messages[0]['result']['isError'] ?? false));
    }

    /** @dataProvider generations */
    public function testTheKeyThatSignsRequestStatesNeverReachesTheStore(string $generation): void
    {
        $session = $this->initialize($generation);
        $stream = $this->post($generation, $session, $this->toolCall(1, 'ask', ['sentinel' => 'in-the-store']), $server);
        $questions = [];
        $server->sleep = function () use ($generation, $session, &$questions): void {
            self::assertStringNotContainsString(Server::SIGNING_KEY, $this->bytes());
            $this->post($generation, $session, $this->toolCall(2, 'remember', ['key' => 'k', 'value' => 'seen-in-bytes']));
            $this->answerAll($generation, $session, $questions);
        };
        self::assertSame([1, 'to in-the-store'], self::result($stream, $questions));
        self::assertStringContainsString('seen-in-bytes', $this->bytes());
        self::assertStringNotContainsString(Server::SIGNING_KEY, $this->bytes());
    }

    /** @dataProvider generations */
    public function testWhatAToolKeepsAfterItsQuestionIsKept(string $generation): void
    {
        $session = $this->initialize($generation);
        $tools = Tools::all() + ['keep' => static function (Double\Context $context): string {
            $context->session->set('answer', $context->elicit('what?'));

            return 'kept';
        }];
        $stream = $this->post($generation, $session, $this->toolCall(1, 'keep'), $server, tools: $tools);
        $questions = [];
        $server->sleep = function () use ($generation, $session, &$questions): void {
            $this->answerAll($generation, $session, $questions);
        };
        self::assertSame([1, 'kept'], self::result($stream, $questions));
        unset($stream, $server);
        $kept = \json_decode(self::result($this->post($generation, $session, $this->toolCall(2, 'recall')))[1], true);
        self::assertSame('to what?', $kept['answer']);
    }

    /** @dataProvider generations */
    public function testParallelSubscriptionsAreAllKept(string $generation): void
    {
        $session = $this->initialize($generation);
        $subscribe = ['id' => 3, 'method' => 'resources/subscribe', 'params' => ['uri' => 'note://a.b']];
        $tools = Tools::all() + ['subscribe' => function (Double\Context $context) use ($generation, $session, $subscribe): string {
            $subscriptions = $context->session->get('resource_subscriptions', []);
            $this->post($generation, $session, $subscribe);
            $context->session->set('resource_subscriptions', ['note://c' => true] + $subscriptions);

            return 'ok';
        }];
        $this->post($generation, $session, $this->toolCall(1, 'subscribe'), tools: $tools);
        $kept = \json_decode(self::result($this->post($generation, $session, $this->toolCall(2, 'recall')))[1], true);
        self::assertEquals(['note://a.b' => true, 'note://c' => true], $kept['resource_subscriptions']);
    }

    /** @dataProvider generations */
    public function testACallThatIsCancelledWhileItWaitsEndsAndItsToolHearsWhy(string $generation): void
    {
        $session = $this->initialize($generation);
        $stream = $this->post($generation, $session, $this->toolCall(7, 'ask', ['sentinel' => 'A']), $server);
        $server->sleep = function () use ($generation, $session): void {
            self::assertSame(1, $this->store()->openSession($session)?->stats()['in_flight']);
            $this->cancel($generation, $session, 8);
            $this->cancel($generation, $session, '7');
            self::assertCount(1, $this->store()->openSession($session)?->allPending() ?? []);
            $this->cancel($generation, $session, 7);
        };
        $result = self::result($stream, $questions);
        self::assertSame(7, $result[0]);
        self::assertStringContainsString('the client has cancelled the request', $result[1]);
        self::assertSame([], $this->store()->openSession($session)?->allPending());

        // A late answer is refused, and a cancelled id can be reused.
        $this->answerAll($generation, $session, $questions);
        self::assertTrue($this->log->has('is discarded: Cancelled') || $generation === Server09::class);
        unset($stream, $server);
        self::assertSame([7, 'x'], self::result($this->post($generation, $session, $this->toolCall(7, 'echo', ['sentinel' => 'x']))));
    }

    /** @dataProvider generations */
    public function testASleepingLookWakesForACancellation(string $generation): void
    {
        $session = $this->initialize($generation);
        $manager = $this->manager();
        $server = new $generation($manager, Tools::all());
        $call = $this->toolCall(7, 'ask', ['sentinel' => 'A']);
        $stream = $server->post(\json_encode(['jsonrpc' => '2.0'] + $call), $session);
        $manager->whileWaiting(static fn () => throw new \LogicException('it has slept for a second'));
        $child = Child::start(
            'usleep(100000); say($store->openSession($args[0])->cancelRequest(7)->name);',
            $this->dsn(),
            $session,
        );
        self::assertStringContainsString('the client has cancelled the request', self::result($stream)[1]);
        self::assertSame('Cancelled', $child->hear());
    }

    /** @dataProvider generations */
    public function testOfTwoWaitingCallsWithOneIdNeitherIsCancelled(string $generation): void
    {
        $session = $this->initialize($generation);
        $first = $this->post($generation, $session, $this->toolCall(1, 'ask', ['sentinel' => 'A']), $one);
        $second = $this->post($generation, $session, $this->toolCall(1, 'ask', ['sentinel' => 'B']), $other);
        $this->cancel($generation, $session, 1);
        self::assertTrue($this->log->has('several with its id wait'));
        self::assertCount(2, $this->store()->openSession($session)?->allPending() ?? []);
        unset($first, $second, $one, $other);
    }

    /** @dataProvider generations */
    public function testACallThatIsGuardedAgainstDuplicatesIsInFlightOnceAndCanBeCancelled(string $generation): void
    {
        $session = $this->initialize($generation);
        $manager = $this->manager(blocking: false);
        $guard = new RejectDuplicateRequests($manager, Psr7::responses(), Psr7::streams());
        $call = \json_encode(['jsonrpc' => '2.0'] + $this->toolCall(7, 'ask', ['sentinel' => 'A']));
        $reply = null;
        $response = $guard->process(Psr7::post($call, $session), new Handler(
            static function () use ($generation, $manager, $call, $session, &$reply): ResponseInterface {
                $reply = (new $generation($manager, Tools::all()))->post($call, $session);

                return Psr7::response('', 'text/event-stream');
            },
        ));
        self::assertSame(1, $this->store()->openSession($session)?->stats()['in_flight']);
        self::assertTrue($this->manager()->cancel(Uuid::fromString($session), 7));
        self::assertStringContainsString('the client has cancelled the request', self::result($reply)[1]);
        $response->getBody()->getContents();
        self::assertSame(0, $this->store()->openSession($session)?->stats()['in_flight']);
    }

    /** @dataProvider generations */
    public function testOfABatchThatAsksTwiceTheLastGetsItsOwnAnswerAndTheFirstIsToldThatItWasGivenUp(string $generation): void
    {
        $session = $this->initialize($generation);
        $calls = [
            ['jsonrpc' => '2.0'] + $this->toolCall(1, 'ask', ['sentinel' => 'A']),
            ['jsonrpc' => '2.0'] + $this->toolCall(2, 'ask', ['sentinel' => 'B']),
        ];
        $server = $this->server($generation);
        $stream = $server->post(\json_encode($calls), $session);
        $messages = [];
        $server->sleep = function () use ($generation, $session, &$messages): void {
            foreach (\array_filter($messages, static fn (array $message): bool => isset($message['method'])) as $question) {
                $this->answerAll($generation, $session, [$question['params']['message'] => $question['id']]);
            }
        };
        ($stream->stream)(static function (string $message) use (&$messages): void {
            $messages[] = \json_decode($message, true);
        });
        $responses = \array_column(\array_filter($messages, static fn (array $m): bool => !isset($m['method'])), null, 'id');
        self::assertSame('to B', $responses[2]['result']['content'][0]['text']);
        self::assertStringContainsString('given up this request', $responses[1]['error']['message']);
        self::assertSame([], $this->store()->openSession($session)?->allPending());
    }

    private function cancel(string $generation, string $session, int|string $requestId): void
    {
        $message = ['method' => 'notifications/cancelled', 'params' => ['requestId' => $requestId]];
        self::assertSame(202, $this->post($generation, $session, $message)->status);
    }

    private function initialize(string $generation): string
    {
        $params = ['protocolVersion' => '2025-11-25', 'clientInfo' => ['name' => 'client']];
        $reply = $this->post($generation, null, ['id' => 0, 'method' => 'initialize', 'params' => $params]);
        self::assertSame(200, $reply->status);
        $this->post($generation, $reply->sessionId, ['method' => 'notifications/initialized']);

        return (string) $reply->sessionId;
    }

    private function server(string $generation, ?array $tools = null): Server
    {
        $manager = new SessionManager(Store::open($this->dsn()), logger: $this->log, blocking: false);

        return new $generation($manager, $tools ?? Tools::all());
    }

    private function post(
        string $generation,
        ?string $session,
        array $message,
        ?Server &$server = null,
        ?array $tools = null,
    ): Reply {
        $server = $this->server($generation, $tools);

        return $server->post(\json_encode(['jsonrpc' => '2.0'] + $message), $session);
    }

    private function toolCall(int $id, string $tool, array $arguments = [], array $meta = []): array
    {
        $params = ['name' => $tool, 'arguments' => $arguments] + ($meta === [] ? [] : ['_meta' => $meta]);

        return ['id' => $id, 'method' => 'tools/call', 'params' => $params];
    }

    /**
     * Serves a reply to its end, and collects its questions in $questions, by their text.
     *
     * @return array{mixed, string} the id and the text of the result
     */
    private static function result(Reply $reply, ?array &$questions = []): array
    {
        $last = null;
        $write = static function (string $text) use (&$questions, &$last): void {
            $last = \json_decode($text, true);

            if (($last['method'] ?? null) === 'elicitation/create') {
                $questions[$last['params']['message']] = $last['id'];
            }
        };

        if ($reply->stream === null) {
            $write((string) $reply->body);
        } else {
            ($reply->stream)($write);
        }

        return [$last['id'] ?? null, $last['result']['content'][0]['text'] ?? \json_encode($last)];
    }

    private function answerAll(string $generation, string $session, array $questions): void
    {
        foreach (\array_filter($questions) as $text => $id) {
            $result = ['action' => 'accept', 'content' => ['answer' => "to $text"]];
            self::assertSame(202, $this->post($generation, $session, ['id' => $id, 'result' => $result])->status);
        }
    }
}
