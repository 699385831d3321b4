<?php

declare(strict_types=1);

namespace McpState\Tests\Contract;

use McpState\Exception\InvalidArgument;
use McpState\Exception\UpdateConflict;

/** Attributes: a tree of values under dotted keys, in which each call changes one branch. */
trait AttributeContract
{
    /** @dataProvider values */
    public function testAValueComesBackAsJsonBringsIt(mixed $value, mixed $back): void
    {
        $session = $this->createSession();
        $session->set('key', $value);

        self::assertSame($back, $session->get('key', 'absent'));
        self::assertTrue($session->has('key'));
    }

    /** @return iterable<string, array{mixed, mixed}> */
    public static function values(): iterable
    {
        yield 'text' => ["caf\u{e9} \u{1f600} /\"\\\n", "caf\u{e9} \u{1f600} /\"\\\n"];
        yield 'empty text' => ['', ''];
        yield 'integer' => [\PHP_INT_MAX, \PHP_INT_MAX];
        yield 'smallest integer' => [\PHP_INT_MIN, \PHP_INT_MIN];
        yield 'float' => [0.1, 0.1];
        yield 'whole float' => [1.0, 1.0];
        yield 'zero' => [0, 0];
        yield 'false' => [false, false];
        yield 'list' => [[1, 'two', [3.5, null]], [1, 'two', [3.5, null]]];
        yield 'empty list' => [[], []];
        yield 'map, in its order' => [['z' => 1, 'a' => ['b' => null]], ['z' => 1, 'a' => ['b' => null]]];
        yield 'object' => [(object) ['a' => 1], ['a' => 1]];
        yield 'empty object' => [new \stdClass(), []];
        yield 'integer keys' => [[5 => 'a', 7 => 'b'], [5 => 'a', 7 => 'b']];
        yield 'large' => [\str_repeat('0123456789abcdef', 20_000), \str_repeat('0123456789abcdef', 20_000)];
        yield 'JsonSerializable' => [new \ArrayIterator(['a' => 1]), ['a' => 1]];
    }

    public function testAbsentIsTheDefault(): void
    {
        $session = $this->createSession();

        self::assertNull($session->get('none'));
        self::assertSame('x', $session->get('none', 'x'));
        self::assertFalse($session->has('none'));
        self::assertSame('x', $session->take('none', 'x'));
        self::assertFalse($session->remove('none'));
        self::assertSame([], $session->all());
    }

    public function testNullCountsAsAbsent(): void
    {
        $session = $this->createSession();
        $session->set('a', null);

        self::assertFalse($session->has('a'));
        self::assertSame('x', $session->get('a', 'x'));
        self::assertTrue($session->putIfAbsent('a', 1));
        $session->set('b', null);
        self::assertSame('x', $session->take('b', 'x'));
        $session->set('c', null);
        self::assertTrue($session->compareAndSet('c', null, 1));
        self::assertSame(1, $session->get('c'));
    }

    public function testAParentAssemblesItsChildren(): void
    {
        $session = $this->createSession();
        $session->set('client.name', 'n');
        $session->set('client.version.major', 2);
        $session->set('clientele', 'another key');

        self::assertSame(['name' => 'n', 'version' => ['major' => 2]], $session->get('client'));
        self::assertSame(['major' => 2], $session->get('client.version'));
        self::assertSame(2, $session->get('client.version.major'));
        self::assertTrue($session->has('client.version'));
        self::assertEquals(
            ['client' => ['name' => 'n', 'version' => ['major' => 2]], 'clientele' => 'another key'],
            $session->all(),
        );
    }

    public function testSettingAParentReplacesItsChildren(): void
    {
        $session = $this->createSession();
        $session->set('a.b', 1);
        $session->set('a.c.d', 2);
        $session->set('ab', 3);
        $session->set('a', ['e' => 4]);

        self::assertEquals(['a' => ['e' => 4], 'ab' => 3], $session->all());
        self::assertFalse($session->has('a.b'));
        self::assertSame(4, $session->get('a.e'));
    }

    public function testSettingAChildEditsAStoredParentAndKeepsItsOtherKeysInOrder(): void
    {
        $session = $this->createSession();
        $session->set('a', ['z' => 1, 'm' => ['x' => 1, 'y' => 2], 'b' => 3]);
        $session->set('a.m.x', 'new');
        $session->set('a.last', 4);

        self::assertSame(['z' => 1, 'm' => ['x' => 'new', 'y' => 2], 'b' => 3, 'last' => 4], $session->get('a'));
        self::assertSame('new', $session->get('a.m.x'));
    }

    public function testRemovingAChildKeepsItsSiblings(): void
    {
        $session = $this->createSession();
        $session->set('a', ['b' => 1, 'c' => 2]);
        $session->set('x.y', 1);
        $session->set('x.z', 2);

        self::assertTrue($session->remove('a.b'));
        self::assertTrue($session->remove('x.y'));
        self::assertFalse($session->remove('a.b'));
        self::assertSame(['c' => 2], $session->get('a'));
        self::assertSame(['z' => 2], $session->get('x'));
    }

    public function testRemovingAParentRemovesItsChildren(): void
    {
        $session = $this->createSession();
        $session->set('a.b', 1);
        $session->set('a.c.d', 2);
        $session->set('ab', 3);

        self::assertTrue($session->remove('a'));
        self::assertSame(['ab' => 3], $session->all());
    }

    public function testTakeRemovesWhatItReturns(): void
    {
        $session = $this->createSession();
        $session->set('a.b', ['c' => 1]);

        self::assertSame(['b' => ['c' => 1]], $session->take('a'));
        self::assertSame('gone', $session->take('a', 'gone'));
        self::assertSame([], $session->all());
    }

    public function testPutIfAbsentNeverOverwrites(): void
    {
        $session = $this->createSession();

        self::assertTrue($session->putIfAbsent('a.b', 1));
        self::assertFalse($session->putIfAbsent('a.b', 2));
        self::assertFalse($session->putIfAbsent('a', 2));
        self::assertTrue($session->putIfAbsent('a.c', false));
        self::assertFalse($session->putIfAbsent('a.c', true));
        self::assertSame(['b' => 1, 'c' => false], $session->get('a'));
    }

    public function testAPatchIsAppliedAtOnceRemovalsFirst(): void
    {
        $session = $this->createSession();
        $session->set('a.old', 1);
        $session->set('keep', 1);
        $session->patch(['a.new' => 2, 'b' => [3], '5' => 'five'], ['a', 'none']);

        self::assertEquals(['a' => ['new' => 2], 'b' => [3], '5' => 'five', 'keep' => 1], $session->all());
    }

    public function testAPatchWithOneBadKeyChangesNothing(): void
    {
        $session = $this->createSession();
        $session->set('a', 1);

        self::assertThrows(InvalidArgument::class, static fn () => $session->patch(['b' => 2, 'c..d' => 3], ['a']));
        self::assertThrows(InvalidArgument::class, static fn () => $session->patch(['b' => "\xff"], ['a']));
        self::assertSame(['a' => 1], $session->all());
    }

    public function testAnEmptyPatchIsNoError(): void
    {
        $session = $this->createSession();
        $session->patch([]);

        self::assertSame([], $session->all());
    }

    public function testCompareAndSetComparesJsonValues(): void
    {
        $session = $this->createSession();
        $session->set('k', ['a' => 1, 'b' => [1, 2]]);

        self::assertFalse($session->compareAndSet('k', ['a' => 1], 'x'));
        self::assertFalse($session->compareAndSet('k', ['a' => 1, 'b' => [2, 1]], 'x'));
        self::assertFalse($session->compareAndSet('k', null, 'x'));
        self::assertTrue($session->compareAndSet('k', ['b' => [1, 2], 'a' => 1], 'x'));
        self::assertFalse($session->compareAndSet('k', 'X', 'y'));
        self::assertTrue($session->compareAndSet('k', 'x', null));
        self::assertSame([], $session->all());
        self::assertFalse($session->compareAndSet('k', 'x', 'y'));
        self::assertTrue($session->compareAndSet('k', null, '1'));
        self::assertFalse($session->compareAndSet('k', 1, 2));
    }

    public function testUpdateMakesTheNewValueOfTheOldOne(): void
    {
        $session = $this->createSession();
        $increment = static fn (?int $n): int => ($n ?? 0) + 1;

        self::assertSame(1, $session->update('n', $increment));
        self::assertSame(2, $session->update('n', $increment));
        self::assertSame(2, $session->get('n'));
        self::assertNull($session->update('n', static fn () => null));
        self::assertFalse($session->has('n'));
    }

    public function testUpdateRunsAgainWhenTheValueChangedMeanwhile(): void
    {
        $session = $this->createSession();
        $runs = 0;
        $result = $session->update('list', static function (?array $list) use ($session, &$runs): array {
            if (++$runs <= 3) {
                $session->set('list', ["other $runs"]);
            }

            return [...($list ?? []), 'mine'];
        });

        self::assertSame(['other 3', 'mine'], $result);
        self::assertSame($result, $session->get('list'));
        self::assertSame(4, $runs);
    }

    public function testUpdateGivesUpAfterManyAttemptsAndStoresNothing(): void
    {
        $session = $this->createSession();
        $runs = 0;

        $interfere = static function () use ($session, &$runs): string {
            $session->set('k', ++$runs);

            return 'mine';
        };

        self::assertThrows(UpdateConflict::class, static fn () => $session->update('k', $interfere));
        self::assertSame($runs, $session->get('k'));
        self::assertGreaterThanOrEqual(100, $runs);
    }

    public function testWhatTheClosureOfAnUpdateThrowsLeavesTheValue(): void
    {
        $session = $this->createSession();
        $session->set('k', 1);

        try {
            $session->update('k', static fn () => throw new \DomainException('no'));
            self::fail('The exception did not reach the caller.');
        } catch (\DomainException) {
            self::assertSame(1, $session->get('k'));
        }
    }

    public function testAttributesOfAnotherSessionAreAnothers(): void
    {
        $one = $this->createSession();
        $two = $this->createSession();
        $one->set('k', 1);

        self::assertSame([], $two->all());
    }

    /** @dataProvider badKeys */
    public function testABadKeyIsRefusedByName(string $key): void
    {
        $session = $this->createSession();

        foreach (
            [
                static fn () => $session->get($key),
                static fn () => $session->has($key),
                static fn () => $session->set($key, 1),
                static fn () => $session->remove($key),
                static fn () => $session->take($key),
                static fn () => $session->putIfAbsent($key, 1),
                static fn () => $session->patch([$key => 1]),
                static fn () => $session->patch([], [$key]),
                static fn () => $session->compareAndSet($key, null, 1),
                static fn () => $session->update($key, static fn () => 1),
            ] as $do
        ) {
            self::assertStringContainsString('key', self::assertThrows(InvalidArgument::class, $do)->getMessage());
        }

        self::assertSame([], $session->all());
    }

    /** @return iterable<string, array{string}> */
    public static function badKeys(): iterable
    {
        yield 'empty' => [''];
        yield 'a dot' => ['.'];
        yield 'empty first part' => ['.a'];
        yield 'empty last part' => ['a.'];
        yield 'empty part' => ['a..b'];
        yield 'NUL' => ["a\0b"];
        yield 'newline' => ["a\nb"];
        yield 'DEL' => ["a\x7f"];
        yield 'not UTF-8' => ["a\xff"];
        yield 'too long' => [\str_repeat('a', 256)];
    }

    public function testTheLongestKeyAndOddCharactersAreFine(): void
    {
        $session = $this->createSession();

        foreach ([\str_repeat('a', 255), 'a b', "\u{e9}", 'Mcp\Server\Session', '$ref', '0', '-1', 'a.0.b'] as $key) {
            $session->set($key, $key);
            self::assertSame($key, $session->get($key));
        }
    }

    /** @dataProvider unencodable */
    public function testWhatJsonCannotExpressIsRefused(mixed $value): void
    {
        $session = $this->createSession();

        foreach (
            [
                static fn () => $session->set('k', $value),
                static fn () => $session->putIfAbsent('k', $value),
                static fn () => $session->compareAndSet('k', null, $value),
                static fn () => $session->compareAndSet('k', $value, 1),
                static fn () => $session->update('k', static fn () => $value),
            ] as $do
        ) {
            self::assertThrows(InvalidArgument::class, $do);
        }

        self::assertSame([], $session->all());
    }

    /** @return iterable<string, array{mixed}> */
    public static function unencodable(): iterable
    {
        $cycle = new \stdClass();
        $cycle->self = $cycle;

        yield 'not UTF-8' => ["caf\xe9"];
        yield 'not UTF-8, deep inside' => [['a' => ['b' => "\xff"]]];
        yield 'NAN' => [\NAN];
        yield 'INF' => [\INF];
        yield 'a resource' => [\STDIN];
        yield 'a cycle' => [$cycle];
    }
}
