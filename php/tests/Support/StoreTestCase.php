<?php

declare(strict_types=1);

namespace McpState\Tests\Support;

use McpState\Claim;
use McpState\Exception\ExceptionInterface;
use McpState\Exception\LimitExceeded;
use McpState\Owner;
use McpState\PendingRequest;
use McpState\PendingStatus;
use McpState\Session;
use McpState\Store;
use PHPUnit\Framework\TestCase;

/** A test on real stores: where they are is the subclass's affair. */
abstract class StoreTestCase extends TestCase
{
    private static int $stores = 0;

    /** The DSN of a place that is this name's alone, without options. */
    abstract protected static function place(string $name): string;

    /** A DSN with options (`max_owners=2&…`). Without $fresh, the same options give the same store in one test run. */
    protected static function dsn(string $options = '', bool $fresh = false): string
    {
        $name = 'mcp-state-test-' . \getmypid() . '-' . ($fresh ? ++self::$stores : \hash('crc32b', $options));
        $place = static::place($name);

        return $options === '' ? $place : $place . (\str_contains($place, '?') ? '&' : '?') . $options;
    }

    protected function createStore(string $options = '', bool $fresh = false): Store
    {
        return Store::open(static::dsn($options, $fresh));
    }

    protected function createSession(string $options = ''): Session
    {
        return $this->createStore($options)->createSession();
    }

    /** An owner whose session nobody else uses. */
    protected function createOwner(string $options = ''): Owner
    {
        return $this->createSession($options)->attach();
    }

    /** A pending request whose deadline has passed, not claimed. */
    protected function createTimedOut(Owner $owner): PendingRequest
    {
        $request = $owner->sendRequest(['method' => 'ask'], 1);
        self::eventually(static fn (): bool => self::statusOf($request) === PendingStatus::TimedOut);

        return $request;
    }

    protected static function statusOf(PendingRequest $request): ?PendingStatus
    {
        foreach ($request->owner->session->allPending() as $info) {
            if ($info->id === $request->id) {
                return $info->status;
            }
        }

        return null;
    }

    /** Waits until $condition holds: for what no event announces, such as time passing. */
    protected static function eventually(\Closure $condition): void
    {
        for ($i = 0; $i < 2000; ++$i) {
            if ($condition()) {
                return;
            }

            \usleep(5000);
        }

        self::fail('Waited ten seconds in vain.');
    }

    /**
     * @template T of ExceptionInterface
     *
     * @param class-string<T> $class
     *
     * @return T
     */
    protected static function assertThrows(string $class, \Closure $do): ExceptionInterface
    {
        try {
            $do();
        } catch (ExceptionInterface $e) {
            self::assertInstanceOf($class, $e, $e->getMessage());

            return $e;
        }

        self::fail("$class was not thrown.");
    }

    protected static function assertLimit(string $limit, int $maximum, int $actual, \Closure $do): void
    {
        $e = self::assertThrows(LimitExceeded::class, $do);
        self::assertSame([$limit, $maximum, $actual], [$e->limit, $e->maximum, $e->actual]);
        self::assertStringContainsString((string) $maximum, $e->getMessage());
        self::assertStringContainsString((string) $actual, $e->getMessage());
    }

    /** @param list<\McpState\OutgoingMessage> $messages */
    protected static function assertBodies(array $expected, array $messages): void
    {
        self::assertSame($expected, \array_map(static fn ($message) => $message->body, $messages));
    }

    protected static function assertClaim(PendingStatus $status, ?string $payload, Claim $claim): void
    {
        self::assertSame([$status, $payload], [$claim->status, $claim->payload]);
    }
}
