<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk;

use McpState\PendingStatus;
use McpState\Sdk\Middleware\PrincipalGuard;
use McpState\Sdk\Middleware\ServiceUnavailable;
use McpState\Sdk\SessionManager;
use McpState\Store;
use McpState\Tests\Sdk\Double\Server08;
use McpState\Tests\Sdk\Double\Server09;
use McpState\Tests\Sdk\Support\Handler;
use McpState\Tests\Sdk\Support\Psr7;
use McpState\Tests\Sdk\Support\SdkTestCase;
use McpState\Tests\Support\Child;
use Psr\Http\Message\ResponseInterface;

/** The drop-in in the view of operators and clients: 503, logs, default timeouts, and waiting exchanges. */
final class ServiceTest extends SdkTestCase
{
    private const INITIALIZE = '{"jsonrpc":"2.0","id":5,"method":"initialize","params":{}}';

    /** @return iterable<string, array{string, string}> */
    public static function refusals(): iterable
    {
        foreach (['0.8' => Server08::class, '0.9' => Server09::class] as $version => $server) {
            yield "no room, $version" => [$server, '&max_sessions=1&on_full=reject'];
            yield "full, $version" => [$server, '&max_store_bytes=1'];
            yield "away, $version" => [$server, 'redis://127.0.0.1:1?retry_ms=1'];
        }
    }

    /**
     * @param class-string $server
     *
     * @dataProvider refusals
     */
    public function testAnInitializeThatTheStoreRefusesIs503WithRetryAfterAndAJsonRpcError(string $server, string $place): void
    {
        $dsn = \str_starts_with($place, 'redis') ? $place : $this->dsn($place);
        $make = fn (): SessionManager => SessionManager::open($dsn, logger: $this->log);

        if (\str_contains($place, 'reject')) {
            $make()->create();
        }

        // The versions of the SDK respond with 200 or 500, or do not catch the exception (null).
        foreach ([null, 200, 500] as $status) {
            $sessions = $make();
            $sdk = new Handler(static function () use ($sessions, $server, $status): ResponseInterface {
                try {
                    (new $server($sessions, []))->post(self::INITIALIZE, null);
                } catch (\Throwable $e) {
                    return $status === null ? throw $e : Psr7::responses()->createResponse($status);
                }

                return Psr7::response();
            });
            $middleware = [
                new ServiceUnavailable($sessions, Psr7::responses(), Psr7::streams()),
                new PrincipalGuard($sessions, static fn (): ?string => null, Psr7::responses(), Psr7::streams()),
            ];

            foreach ($middleware as $each) {
                $response = $each->process(Psr7::post(self::INITIALIZE), $sdk);
                self::assertSame([503, '1'], [$response->getStatusCode(), $response->getHeaderLine('Retry-After')]);
                self::assertSame(-32603, \json_decode((string) $response->getBody(), true)['error']['code']);
            }
        }

        self::assertTrue($this->log->has('cannot create a session'));
    }

    public function testOneRefusalMakesOneResponse503(): void
    {
        $this->manager()->create();
        $sessions = SessionManager::open($this->dsn('&max_sessions=1&on_full=reject'), logger: $this->log);
        $middleware = new ServiceUnavailable($sessions, Psr7::responses(), Psr7::streams());
        $failing = new Handler(static function () use ($sessions): ResponseInterface {
            $sessions->create();

            return Psr7::response();
        });
        self::assertSame(503, $middleware->process(Psr7::post(self::INITIALIZE), $failing)->getStatusCode());
        self::assertSame(200, $middleware->process(Psr7::post(self::INITIALIZE), Handler::ok())->getStatusCode());
    }

    public function testAQuestionThatNamesNoTimeHasTheStoresRequestTimeout(): void
    {
        $store = Store::open($this->dsn('&request_timeout_ms=1500'));
        $manager = new SessionManager($store, logger: $this->log, blocking: false);
        $session = $this->resolved($manager, $manager->create()->getId());
        $this->ask($session, 120); // This is the SDK's default.
        $this->ask($session, 60);
        [$default, $named] = $store->openSession($session->getId()->toRfc4122())?->allPending() ?? [];
        self::assertSame(PendingStatus::Waiting, $default->status);
        self::assertLessThanOrEqual(1500, $default->remainingMs);
        self::assertGreaterThan(1500, $named->remainingMs);
    }

    public function testAQuestionSaysItsMethodAndTheToolThatAsks(): void
    {
        $manager = $this->manager(blocking: false);
        $id = $manager->create()->getId();
        $manager->serves([['method' => 'tools/call', 'params' => ['name' => "gre\u{e9}t"]]]);
        $this->ask($this->resolved($manager, $id), 60, 'elicitation/create');
        [$pending] = $this->store()->openSession($id->toRfc4122())?->allPending() ?? [];
        self::assertSame('elicitation/create (tools/call gre??t)', $pending->method);
    }

    public function testWarningsGoToTheErrorLogWhereNoLoggerIsGiven(): void
    {
        $log = "$this->directory/log";
        $before = \ini_set('error_log', $log);

        try {
            $manager = new SessionManager($this->store(), blocking: false);
            $session = $this->resolved($manager, $manager->create()->getId());
            $session->set('_mcp.responses.77', self::response(77));
        } finally {
            \ini_set('error_log', (string) $before);
        }

        self::assertStringContainsString('the answer to request 77 is discarded: Unknown', (string) \file_get_contents($log));
    }

    public function testAKilledProcessGivesItsPlaceAmongThoseThatWaitBackAtOnce(): void
    {
        $child = Child::start('$room = $store->waitingRoom(1); $room->attach(); say("in"); hear();', $this->dsn());
        self::assertSame('in', $child->hear());
        self::assertSame([1, 1], [$this->store()->stats()['waiting'], $this->store()->stats()['max_waiting']]);
        [$manager, $id] = [$this->manager(blocking: false, maxWaiting: 1), $this->session()];
        $session = $this->resolved($manager, $id);
        $refused = $this->ask($session);
        $error = $manager->createWithId($id)->get("_mcp.responses.$refused");
        self::assertStringContainsString('1 exchanges already wait for their clients', (string) \json_encode($error));
        self::assertSame(1, $this->store()->stats()['counters']['waiting_refused']);
        $child->kill();
        self::assertSame(0, $this->store()->stats()['waiting']);
        $asked = $this->ask($session);
        self::assertNull($manager->createWithId($id)->get("_mcp.responses.$asked"));
    }

    public function testMoreThan256ExchangesMayWait(): void
    {
        $managers = [];

        for ($i = 0; $i < 300; ++$i) {
            $managers[] = $manager = $this->manager(blocking: false, maxWaiting: 300);
            $session = $this->resolved($manager, $this->session());
            $asked = $this->ask($session);
            self::assertNull($manager->createWithId($session->getId())->get("_mcp.responses.$asked"), "the $i-th");
        }

        self::assertSame(300, $this->store()->stats()['waiting']);
        unset($managers);
    }
}
