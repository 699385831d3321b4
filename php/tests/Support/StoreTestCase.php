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

/** A test on real stores, whose place the subclass defines. */
abstract class StoreTestCase extends TestCase
{
    private static int $stores = 0;

    /** Returns the DSN of a place that only this name has, without options. */
    abstract protected static function place(string $name): string;

    /** Returns a DSN with options (`max_owners=2&…`). Without $fresh, equal options return the same store. */
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

    /** Creates a session that no other test uses, and attaches an owner. */
    protected function createOwner(string $options = ''): Owner
    {
        return $this->createSession($options)->attach();
    }

    /** Creates a pending request whose deadline has passed, and does not claim it. */
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

    /** Waits until $condition holds, for conditions without an event, such as the passing of time. */
    protected static function eventually(\Closure $condition): void
    {
        for ($i = 0; $i < 2000; ++$i) {
            if ($condition()) {
                return;
            }

            \usleep(5000);
        }

        self::fail('The condition did not hold within ten seconds.');
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
