<?php

declare(strict_types=1);

namespace McpState\Tests\Library;

use McpState\CancelOutcome;
use McpState\DuplicatePolicy;
use McpState\Exception\ExceptionInterface;
use McpState\Interest;
use McpState\LateReason;
use McpState\Native;
use McpState\OwnerKind;
use McpState\PendingStatus;
use McpState\WaitStatus;
use PHPUnit\Framework\TestCase;

/** The stable properties of the public API: final classes, read-only values, and the numbers of the engine. */
final class PublicApiTest extends TestCase
{
    /** @return iterable<string, array{\ReflectionClass<object>}> */
    public static function classes(): iterable
    {
        $src = \dirname(__DIR__, 2) . '/src';

        foreach ([...\glob("$src/*.php"), ...\glob("$src/{Exception,Internal}/*.php", \GLOB_BRACE)] as $file) {
            $name = 'McpState' . \strtr(\substr($file, \strlen($src), -4), '/', '\\');

            yield $name => [new \ReflectionClass($name)];
        }
    }

    /** @dataProvider classes */
    public function testEveryClassIsClosedAndItsValuesReadOnly(\ReflectionClass $class): void
    {
        self::assertTrue($class->isFinal() || $class->isInterface());
        self::assertNotFalse($class->getDocComment(), 'undocumented');

        if ($class->isSubclassOf(\Throwable::class)) {
            self::assertTrue($class->isSubclassOf(ExceptionInterface::class) || $class->isInterface());
        }

        foreach ($class->getProperties(\ReflectionProperty::IS_PUBLIC) as $property) {
            if ($property->class === $class->name) {
                self::assertTrue($property->isReadOnly(), $property->name);
            }
        }

        foreach ($class->getMethods(\ReflectionMethod::IS_PUBLIC) as $method) {
            if ($method->class === $class->name && $method->isUserDefined() && !$method->isConstructor()) {
                self::assertNotFalse($method->getDocComment(), "$method->name is undocumented");
                self::assertTrue($method->hasReturnType(), $method->name);
            }
        }
    }

    /**
     * @dataProvider enums
     *
     * @param class-string<\BackedEnum> $enum
     */
    public function testTheNumbersOfAnEnumAreTheExtensions(string $enum, string $prefix): void
    {
        $native = [];

        foreach ((new \ReflectionClass(Native\Session::class))->getConstants() as $name => $value) {
            if (\str_starts_with($name, $prefix)) {
                $words = \strtolower(\strtr(\substr($name, \strlen($prefix)), '_', ' '));
                $native[\str_replace(' ', '', \ucwords($words))] = $value;
            }
        }

        self::assertSame($native, \array_column($enum::cases(), 'value', 'name'));
    }

    /** @return iterable<array{class-string<\BackedEnum>, string}> */
    public static function enums(): iterable
    {
        yield [OwnerKind::class, 'OWNER_'];
        yield [Interest::class, 'INTEREST_'];
        yield [WaitStatus::class, 'WAIT_'];
        yield [PendingStatus::class, 'CLAIM_'];
        yield [LateReason::class, 'LATE_'];
        yield [CancelOutcome::class, 'CANCEL_'];
        yield [DuplicatePolicy::class, 'POLICY_'];
    }

    public function testDeliveredIsZero(): void
    {
        self::assertSame(0, Native\Session::DELIVERED);
    }
}
