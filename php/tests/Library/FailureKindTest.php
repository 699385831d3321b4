<?php

declare(strict_types=1);

namespace McpState\Tests\Library;

use McpState\Exception\ExceptionInterface;
use McpState\Exception\InternalError;
use McpState\Exception\InvalidArgument;
use McpState\Exception\InvalidDsn;
use McpState\Exception\LimitExceeded;
use McpState\Exception\OutcomeUnknown;
use McpState\Exception\OwnerExpired;
use McpState\Exception\SessionNotFound;
use McpState\Exception\StoreCorrupt;
use McpState\Exception\StoreFull;
use McpState\Exception\StoreIncompatible;
use McpState\Exception\StoreUnavailable;
use McpState\Internal\FailureKind;
use McpState\Native;
use PHPUnit\Framework\TestCase;

/** Each kind of failure of a driver becomes its public exception. */
final class FailureKindTest extends TestCase
{
    /**
     * @dataProvider kinds
     *
     * @param class-string $class
     * @param class-string $parent
     */
    public function testEachKindHasItsException(int $kind, string $class, string $parent): void
    {
        $failure = new Native\Failure('what went wrong', $kind);
        $e = FailureKind::exception($failure);

        self::assertInstanceOf($class, $e);
        self::assertInstanceOf($parent, $e);
        self::assertInstanceOf(ExceptionInterface::class, $e);
        self::assertSame(['what went wrong', $kind], [$e->getMessage(), $e->getCode()]);
        self::assertSame($failure, $e->getPrevious());
    }

    /** @return iterable<string, array{int, class-string, class-string}> */
    public static function kinds(): iterable
    {
        yield 'argument' => [1, InvalidArgument::class, \InvalidArgumentException::class];
        yield 'dsn' => [2, InvalidDsn::class, \InvalidArgumentException::class];
        yield 'limit' => [3, LimitExceeded::class, \OverflowException::class];
        yield 'session' => [4, SessionNotFound::class, \RuntimeException::class];
        yield 'owner' => [5, OwnerExpired::class, \RuntimeException::class];
        yield 'unavailable' => [6, StoreUnavailable::class, \RuntimeException::class];
        yield 'full' => [7, StoreFull::class, \RuntimeException::class];
        yield 'incompatible' => [8, StoreIncompatible::class, \RuntimeException::class];
        yield 'corrupt' => [9, StoreCorrupt::class, \RuntimeException::class];
        yield 'unknown outcome' => [10, OutcomeUnknown::class, \RuntimeException::class];
        yield 'internal' => [11, InternalError::class, \RuntimeException::class];
    }

    public function testALimitComesWithItsNumbers(): void
    {
        $failure = new Native\Failure('too much', 3);
        $failure->limit = 'max_owners';
        $failure->maximum = 2;
        $failure->actual = 3;
        $e = FailureKind::exception($failure);

        self::assertInstanceOf(LimitExceeded::class, $e);
        self::assertSame(['max_owners', 2, 3], [$e->limit, $e->maximum, $e->actual]);
    }

    public function testAKindThatIsNotKnownIsInternal(): void
    {
        $e = FailureKind::exception(new Native\Failure('new', 99));

        self::assertInstanceOf(InternalError::class, $e);
        self::assertStringContainsString('99', $e->getMessage());
    }

    public function testTheNumbersAreTheExtensions(): void
    {
        $kinds = [];

        foreach (FailureKind::cases() as $case) {
            $kinds[\strtoupper((string) \preg_replace('/(?<!^)[A-Z]/', '_$0', $case->name))] = $case->value;
        }

        self::assertSame((new \ReflectionClass(Native\FailureKind::class))->getConstants(), $kinds);
    }
}
