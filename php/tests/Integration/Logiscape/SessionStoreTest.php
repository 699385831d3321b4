<?php

declare(strict_types=1);

namespace McpState\Tests\Integration\Logiscape;

use Mcp\Server\Transport\Http\HttpSession;
use McpState\Exception\LimitExceeded;
use McpState\Exception\StoreUnavailable;
use McpState\Logiscape\SessionStore;
use McpState\Store;
use McpState\Tests\Support\Directory;
use PHPUnit\Framework\TestCase;

require_once __DIR__ . '/../autoload.php';

/** Each adapter represents one PHP request, as in php-fpm; several adapters in one test are concurrent requests. */
final class SessionStoreTest extends TestCase
{
    private string $directory;

    protected function setUp(): void
    {
        $this->directory = Directory::temporary();
    }

    protected function tearDown(): void
    {
        Directory::remove($this->directory);
    }

    public function testWhatOneRequestSavedTheNextOneLoads(): void
    {
        $session = $this->created(['env' => 'test', 'rate' => 1.0, 'oauth_claims' => ['sub' => 'x', 'aud' => []]]);
        $loaded = $this->request()->load($session->getId());

        self::assertInstanceOf(HttpSession::class, $loaded);
        self::assertSame($session->toArray(), $loaded->toArray());
    }

    public function testUnknownAndImpossibleSessionsAreNotThere(): void
    {
        self::assertNull($this->request()->load('unknown'));
        self::assertNull($this->request()->load(''));
        self::assertNull($this->request()->load(\str_repeat('x', 10_000)));
        $this->request()->delete('unknown');
        $this->request()->delete("\n");
    }

    public function testParallelRequestsKeepEachOthersMetadata(): void
    {
        $id = $this->created()->getId();
        [$a, $b] = [$this->request(), $this->request()];
        [$one, $two] = [$a->load($id), $b->load($id)];
        $one->setMetadata('one', ['of' => 'a']);
        $two->setMetadata('two', ['of' => 'b']);
        $a->save($one);
        $b->save($two);

        self::assertEquals(['one' => ['of' => 'a'], 'two' => ['of' => 'b']], $this->metadata($id));
    }

    public function testASecondSaveOfTheSameRequestWritesOverNothingThatCameBetween(): void
    {
        $id = $this->created(['shared' => 'old'])->getId();
        [$a, $b] = [$this->request(), $this->request()];
        [$one, $two] = [$a->load($id), $b->load($id)];
        $one->setMetadata('one', 1);
        $a->save($one);
        $two->setMetadata('shared', 'new');
        $b->save($two);
        $one->setMetadata('one', 2);
        $a->save($one);

        self::assertEquals(['one' => 2, 'shared' => 'new'], $this->metadata($id));
    }

    public function testWhereBothSetOneKeyTheLaterSaveHasItWhole(): void
    {
        $id = $this->created(['cart' => ['apples' => 1]])->getId();
        [$a, $b] = [$this->request(), $this->request()];
        [$one, $two] = [$a->load($id), $b->load($id)];
        $one->setMetadata('cart', ['apples' => 2]);
        $two->setMetadata('cart', ['pears' => 1]);
        $a->save($one);
        $b->save($two);

        self::assertSame(['cart' => ['pears' => 1]], $this->metadata($id));
    }

    public function testQuestionsAskedAtTheSameTimeHaveTheirOwnNumbersAndAreAllKept(): void
    {
        $id = $this->created(['mcp_server_session' => ['initializationState' => 3, 'nextRequestId' => 0]])->getId();
        $numbers = [];
        $requests = [];

        foreach (['a', 'b', 'c'] as $tool) {
            $request = $this->request();
            $requests[] = [$request, $request->load($id), $tool];
        }

        foreach ($requests as [$request, $session, $tool]) {
            $numbers[$tool] = $this->ask($session, $tool);
            $request->save($session);
        }

        self::assertCount(3, \array_unique($numbers));
        $stored = $this->metadata($id)['mcp_server_session'];
        self::assertEquals(
            [$numbers['a'] => ['tool' => 'a'], $numbers['b'] => ['tool' => 'b'], $numbers['c'] => ['tool' => 'c']],
            $stored['pendingElicitations'],
        );
        self::assertSame(\max($numbers) + 1, $stored['nextRequestId']);
    }

    public function testALaterRequestDoesNotReuseTheNumberOfAnEarlierOne(): void
    {
        $id = $this->created(['mcp_server_session' => ['nextRequestId' => 7]])->getId();
        $numbers = [];

        for ($i = 0; $i < 5; ++$i) {
            $request = $this->request();
            $session = $request->load($id);
            $numbers[] = $this->ask($session, 'tool');
            $numbers[] = $this->ask($session, 'tool');
            $request->save($session);
        }

        self::assertSame(\array_unique($numbers), $numbers);
    }

    public function testAnAnsweredQuestionStaysAnsweredWhileAnotherIsAsked(): void
    {
        $id = $this->created(['mcp_server_session' => ['nextRequestId' => 0]])->getId();
        $asking = $this->request();
        $session = $asking->load($id);
        $first = $this->ask($session, 'first');
        $asking->save($session);

        [$answering, $other] = [$this->request(), $this->request()];
        [$answered, $parallel] = [$answering->load($id), $other->load($id)];
        $second = $this->ask($parallel, 'second');
        $other->save($parallel);
        $answered->setMetadata('mcp_server_session', \array_diff_key(
            $answered->getMetadata('mcp_server_session'),
            ['pendingElicitations' => true], // The SDK omits an empty list of questions.
        ));
        $answering->save($answered);
        $asking->save($session); // The first request, whose object still has the question, saves its last frame.

        self::assertNotSame($first, $second);
        self::assertSame(
            [$second => ['tool' => 'second']],
            $this->metadata($id)['mcp_server_session']['pendingElicitations'],
        );
    }

    public function testStreamsAndTheirEventsAreKeptEachInItsOrder(): void
    {
        $id = $this->created()->getId();
        [$a, $b] = [$this->request(), $this->request()];
        [$one, $two] = [$a->load($id), $b->load($id)];

        for ($seq = 0; $seq < 3; ++$seq) {
            $this->frame($one, 'a', $seq);
            $a->save($one);
            $this->frame($two, 'b', $seq);
            $b->save($two);
        }

        $metadata = $this->metadata($id);
        $of = static fn (string $stream): array => \array_values(\array_filter(
            $metadata['mcp_stream_events']['entries'],
            static fn (array $entry): bool => $entry['streamId'] === $stream,
        ));
        self::assertSame([0, 1, 2], \array_column($of('a'), 'seq'));
        self::assertSame([0, 1, 2], \array_column($of('b'), 'seq'));
        self::assertSame(2, $metadata['mcp_streams']['a']['lastSeq']);
        self::assertSame(2, $metadata['mcp_streams']['b']['lastSeq']);
    }

    public function testAForgottenStreamStaysForgotten(): void
    {
        $session = $this->created();
        $a = $this->request();
        $one = $a->load($session->getId());
        $this->frame($one, 'a', 0);
        $a->save($one);
        $b = $this->request();
        $two = $b->load($session->getId());
        $two->setMetadata('mcp_streams', []);
        $two->setMetadata('mcp_stream_events', ['capacity' => 1000, 'entries' => []]);
        $b->save($two);
        $this->frame($one, 'a', 1);
        $a->save($one);

        self::assertSame([], $this->metadata($session->getId())['mcp_streams']);
    }

    public function testTheLatestActivityCounts(): void
    {
        $session = HttpSession::fromArray(['last_activity' => 1_000]);
        $this->request()->save($session);
        [$a, $b] = [$this->request(), $this->request()];
        [$one, $two] = [$a->load($session->getId()), $b->load($session->getId())];
        $one->updateActivity();
        $a->save($one);
        $two->updateActivity(2_000);
        $b->save($two);

        self::assertSame($one->getLastActivity(), $this->request()->load($session->getId())->getLastActivity());
    }

    public function testADeletedSessionIsNotBroughtBackByARequestStillRunning(): void
    {
        $creating = $this->request();
        $session = new HttpSession();
        $creating->save($session);
        $running = $this->request();
        $loaded = $running->load($session->getId());
        $this->request()->delete($session->getId());
        $loaded->setMetadata('late', true);
        $running->save($loaded);
        $creating->save($session);

        self::assertNull($this->request()->load($session->getId()));
    }

    public function testASessionExpires(): void
    {
        $request = new SessionStore($this->store(), ttl: 30);
        $session = new HttpSession();
        $request->save($session);
        \usleep(60_000);

        self::assertNull($this->request()->load($session->getId()));
    }

    public function testAStoreThatCannotBeAskedIsNotASessionThatIsNotThere(): void
    {
        \mkdir("$this->directory/file");
        \file_put_contents("$this->directory/file/x", '');
        $request = SessionStore::open("file://$this->directory/file/x");

        $this->expectException(StoreUnavailable::class);
        $request->load('anything');
    }

    public function testARecordOverTheLimitIsATypedError(): void
    {
        $request = $this->request('&max_attribute_bytes=1000');
        $session = new HttpSession();
        $session->setMetadata('large', \str_repeat('x', 2_000));

        $this->expectException(LimitExceeded::class);
        $request->save($session);
    }

    /** @param array<string, mixed> $metadata */
    private function created(array $metadata = []): HttpSession
    {
        $session = new HttpSession();

        foreach ($metadata as $key => $value) {
            $session->setMetadata($key, $value);
        }

        $this->request()->save($session);

        return $session;
    }

    /** Asks a question like the SDK: takes the next number, and records the tool that waits for the answer. */
    private function ask(HttpSession $session, string $tool): int
    {
        $server = $session->getMetadata('mcp_server_session');
        $number = $server['nextRequestId']++;
        $server['pendingElicitations'][$number] = ['tool' => $tool];
        $session->setMetadata('mcp_server_session', $server);

        return $number;
    }

    /** Writes one event of a stream like the SDK. */
    private function frame(HttpSession $session, string $stream, int $seq): void
    {
        $log = $session->getMetadata('mcp_stream_events', ['capacity' => 1000, 'entries' => []]);
        $log['entries'][] = ['streamId' => $stream, 'seq' => $seq, 'frame' => ['data' => "$stream$seq"]];
        $session->setMetadata('mcp_stream_events', $log);
        $session->setMetadata('mcp_streams', [
            $stream => ['streamId' => $stream, 'status' => 'open', 'lastSeq' => $seq],
        ] + $session->getMetadata('mcp_streams', []));
    }

    /** @return array<string, mixed> */
    private function metadata(string $id): array
    {
        $metadata = $this->store()->openSession($id)?->get('record')['metadata'] ?? null;
        self::assertIsArray($metadata);

        return $metadata;
    }

    private function request(string $options = ''): SessionStore
    {
        return new SessionStore($this->store($options));
    }

    private function store(string $options = ''): Store
    {
        return Store::open("file://$this->directory/store?durability=none$options");
    }
}
