<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk;

use McpState\Exception\StoreUnavailable;
use McpState\Sdk\Middleware\PrincipalGuard;
use McpState\Sdk\Middleware\RejectDuplicateRequests;
use McpState\Sdk\Middleware\SingleUseRequestState;
use McpState\Sdk\SessionManager;
use McpState\Tests\Sdk\Double\Http\Stream;
use McpState\Tests\Sdk\Support\Handler;
use McpState\Tests\Sdk\Support\Psr7;
use McpState\Tests\Sdk\Support\SdkTestCase;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\MiddlewareInterface;
use Symfony\Component\Uid\Uuid;

final class MiddlewareTest extends SdkTestCase
{
    public function testASecondRequestWithAnIdInFlightIs409WithTheIdEchoed(): void
    {
        $session = (string) $this->session();
        $middleware = new RejectDuplicateRequests($this->manager(), Psr7::responses(), Psr7::streams());
        $outer = $middleware->process(self::call(1, $session), new Handler(function () use ($session): ResponseInterface {
            foreach ([[1, 409], ['1', 200], [2, 200]] as [$id, $status]) {
                $response = $this->duplicates()->process(self::call($id, $session), Handler::ok());
                self::assertSame($status, $response->getStatusCode(), \json_encode($id));

                if ($status === 409) {
                    $error = \json_decode((string) $response->getBody(), true);
                    self::assertSame([1, -32600], [$error['id'], $error['error']['code']]);
                }
            }

            return Psr7::response();
        }));
        self::assertSame(200, $outer->getStatusCode());
        $again = $this->duplicates()->process(self::call(1, $session), Handler::ok());
        self::assertSame(200, $again->getStatusCode(), 'one after another is allowed');
    }

    /** @return iterable<string, array{\Closure(string): string}> */
    public function spellingsOfASession(): iterable
    {
        yield 'as it was given' => [static fn (string $id): string => $id];
        yield 'upper case' => ['strtoupper'];
        yield 'mixed case' => ['ucfirst'];

        if (\method_exists(Uuid::class, 'toBase58')) {
            yield 'base 58' => [static fn (string $id): string => Uuid::fromString($id)->toBase58()];
            yield 'base 32' => [static fn (string $id): string => Uuid::fromString($id)->toBase32()];
        }
    }

    /**
     * @dataProvider spellingsOfASession
     *
     * @param \Closure(string): string|callable-string $spell
     */
    public function testASessionIsOneInEverySpellingOfItsId(\Closure|string $spell): void
    {
        $id = $this->session();
        $manager = $this->manager(principal: 'alice');
        $alices = $manager->create()->getId();
        $middleware = $this->duplicates();
        $middleware->process(self::call(1, (string) $id), new Handler(function () use ($spell, $id): ResponseInterface {
            $second = $this->duplicates()->process(self::call(1, $spell((string) $id)), Handler::ok());
            self::assertSame(409, $second->getStatusCode());

            return Psr7::response();
        }));
        self::assertSame($alices->toRfc4122(), $manager->find($spell((string) $alices))?->id);
        self::assertNull($this->manager(principal: 'bob')->find($spell((string) $alices)));
    }

    public function testWhatIsNoUuidIsNoSession(): void
    {
        foreach (['', 'mcp-state.waiting', "a\0b", \str_repeat('x', 500)] as $id) {
            self::assertNull($this->manager()->find($id));
        }
    }

    public function testAnIdIsInFlightUntilItsStreamHasBeenRead(): void
    {
        $session = (string) $this->session();
        $stream = $this->duplicates()->process(self::call(1, $session), new Handler(
            static fn (): ResponseInterface => Psr7::response('data', 'text/event-stream'),
        ));
        self::assertSame(409, $this->duplicates()->process(self::call(1, $session), Handler::ok())->getStatusCode());
        self::assertSame('data', (string) $stream->getBody());
        self::assertSame(200, $this->duplicates()->process(self::call(1, $session), Handler::ok())->getStatusCode());
    }

    public function testAnIdIsFreeAgainWhenItsHandlerThrows(): void
    {
        $session = (string) $this->session();

        try {
            $this->duplicates()->process(self::call(1, $session), new Handler(static fn () => throw new \LogicException('bug')));
            self::fail('Nothing was thrown.');
        } catch (\LogicException $e) {
            self::assertSame('bug', $e->getMessage());
        }

        self::assertSame(200, $this->duplicates()->process(self::call(1, $session), Handler::ok())->getStatusCode());
    }

    public function testTheHandlerReadsTheWholeBodyAlsoWhenItCannotBeRewound(): void
    {
        $session = (string) $this->session();

        $bodies = [self::call(1, $session)->getBody()];

        if (!Psr7::isReal()) {
            $bodies[] = new Stream((string) self::call(1, $session)->getBody(), false);
        }

        foreach ($bodies as $body) {
            $seen = '';
            $handler = new Handler(static function ($request) use (&$seen): ResponseInterface {
                $seen = (string) $request->getBody();

                return Psr7::response();
            });
            $this->duplicates()->process(self::call(1, $session)->withBody($body), $handler);
            self::assertSame((string) self::call(1, $session)->getBody(), $seen);
        }
    }

    public function testARequestStateIsServedOnce(): void
    {
        $middleware = new SingleUseRequestState($this->store(), 60_000, null, Psr7::responses(), Psr7::streams());
        self::assertSame(200, $middleware->process(self::retry('state-1'), Handler::ok())->getStatusCode());
        $second = $middleware->process(self::retry('state-1'), Handler::ok());
        self::assertSame(400, $second->getStatusCode());
        $error = \json_decode((string) $second->getBody(), true);
        self::assertSame([9, -32602], [$error['id'], $error['error']['code']]);
        self::assertSame(200, $middleware->process(self::retry('state-2'), Handler::ok())->getStatusCode());
        self::assertSame(200, $middleware->process(self::call(1, ''), Handler::ok())->getStatusCode());
    }

    /** @return iterable<string, array{\Closure(string, string): string}> */
    public function spellingsOfAState(): iterable
    {
        yield 'as it was given' => [static fn (string $body, string $mac): string => "$body.$mac"];
        yield 'padded' => [static fn (string $body, string $mac): string => "$body.$mac="];
        yield 'a blank behind it' => [static fn (string $body, string $mac): string => "$body.$mac "];
        yield 'a line break in the signature' => [static fn (string $body, string $mac): string => "$body." . \substr_replace($mac, "\n", 5, 0)];
        yield 'the other alphabet' => [static fn (string $body, string $mac): string => "$body." . \strtr($mac, '-_', '+/')];
        yield 'unused bits set' => [static fn (string $body, string $mac): string => "$body." . \substr($mac, 0, -1) . \chr(\ord($mac[-1]) + 1)];
    }

    /**
     * @dataProvider spellingsOfAState
     *
     * @param \Closure(string, string): string $spell
     */
    public function testARequestStateIsServedOnceInWhateverSpelling(\Closure $spell): void
    {
        $encode = static fn (string $bytes): string => \rtrim(\strtr(\base64_encode($bytes), '+/', '-_'), '=');
        $body = $encode('{"exp":1,"data":{}}');
        // The text ends with two unused bits, and contains both characters that differ between the alphabets.
        $mac = $encode("\xfb\xff" . \str_repeat('m', 29) . "\x00");
        self::assertStringContainsString('-', $mac);
        self::assertStringContainsString('_', $mac);
        $again = $spell($body, $mac);
        $isSame = \base64_decode(\strtr(\explode('.', $again)[1], '-_', '+/'), true) === \base64_decode(\strtr($mac, '-_', '+/'), true);
        self::assertTrue($isSame, 'the SDK takes it for the same signature');
        $middleware = new SingleUseRequestState($this->store(), 60_000, null, Psr7::responses(), Psr7::streams());
        self::assertSame(200, $middleware->process(self::retry("$body.$mac"), Handler::ok())->getStatusCode());
        self::assertSame(400, $middleware->process(self::retry($again), Handler::ok())->getStatusCode());
    }

    /** @dataProvider middleware */
    public function testWhatIsTooLongToBeLookedAtIsRefused(\Closure $make): void
    {
        $middleware = $make(fn () => $this->store());
        $request = Psr7::post(self::retry('state')->getBody() . \str_repeat(' ', 4 * 1024 * 1024));
        $status = $middleware->process($request, Handler::ok())->getStatusCode();
        self::assertSame($middleware instanceof PrincipalGuard ? 200 : 413, $status);
    }

    public function testAStateThatThisServerDidNotSignIsLeftToTheSdk(): void
    {
        $isValid = static fn (string $state): bool => $state !== 'forged';
        $middleware = new SingleUseRequestState($this->store(), 60_000, $isValid, Psr7::responses(), Psr7::streams());

        foreach ([1, 2] as $_) {
            self::assertSame(200, $middleware->process(self::retry('forged'), Handler::ok())->getStatusCode());
        }
    }

    public function testTheGuardTellsTheManagerWhoIsCalling(): void
    {
        $manager = $this->manager();
        $who = 'alice';
        $principal = static function () use (&$who): string {
            return $who;
        };
        $guard = new PrincipalGuard($manager, $principal, Psr7::responses(), Psr7::streams());
        $id = null;
        $guard->process(Psr7::post(), new Handler(static function () use ($manager, &$id): ResponseInterface {
            $id = $manager->create()->getId();

            return Psr7::response();
        }));

        foreach (['alice' => true, 'bob' => false] as $who => $isThere) {
            $guard->process(self::call(1, (string) $id), new Handler(
                static function () use ($manager, $id, $isThere): ResponseInterface {
                    self::assertSame($isThere, $manager->exists($id));

                    return Psr7::response();
                },
            ));
        }
    }

    /** @return iterable<string, array{\Closure(\Closure): MiddlewareInterface}> */
    public function middleware(): iterable
    {
        yield 'RejectDuplicateRequests' => [static fn (\Closure $open) => new RejectDuplicateRequests(
            new SessionManager($open),
            Psr7::responses(),
            Psr7::streams(),
        )];
        yield 'SingleUseRequestState' => [static fn (\Closure $open) => new SingleUseRequestState(
            $open,
            responses: Psr7::responses(),
            streams: Psr7::streams(),
        )];
        yield 'PrincipalGuard' => [static fn (\Closure $open) => new PrincipalGuard(
            new SessionManager($open),
            static fn (): ?string => null,
            Psr7::responses(),
            Psr7::streams(),
        )];
    }

    /** @dataProvider middleware */
    public function testAStoreThatCannotBeAskedIs503WithRetryAfter(\Closure $make): void
    {
        $middleware = $make(static fn () => throw new StoreUnavailable('no such device'));
        $request = self::retry('state', 'ad27d2b1-0000-4000-8000-000000000000');
        $response = $middleware->process($request, Handler::ok());
        self::assertSame([503, '1'], [$response->getStatusCode(), $response->getHeaderLine('Retry-After')]);
        self::assertStringNotContainsString('device', (string) $response->getBody());
    }

    /** @dataProvider middleware */
    public function testAFailureOfTheStoreBehindItIs503AndABugIsNot(\Closure $make): void
    {
        $middleware = $make(fn () => $this->store());
        $wrapped = static fn () => throw new \RuntimeException('wrapped', 0, new StoreUnavailable('gone'));
        self::assertSame(503, $middleware->process(Psr7::post(), new Handler($wrapped))->getStatusCode());
        $this->expectException(\LogicException::class);
        $middleware->process(Psr7::post(), new Handler(static fn () => throw new \LogicException('bug')));
    }

    private function duplicates(): RejectDuplicateRequests
    {
        return new RejectDuplicateRequests($this->manager(), Psr7::responses(), Psr7::streams());
    }

    private static function call(int|string $id, string $session): ServerRequestInterface
    {
        return Psr7::post(\json_encode(['jsonrpc' => '2.0', 'id' => $id, 'method' => 'ping']), $session);
    }

    private static function retry(string $state, string $session = ''): ServerRequestInterface
    {
        $params = ['requestState' => $state];
        $message = ['jsonrpc' => '2.0', 'id' => 9, 'method' => 'tools/call', 'params' => $params];

        return Psr7::post(\json_encode($message), $session);
    }
}
