<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk;

use McpState\Tests\Sdk\Double\Codec;
use McpState\Tests\Sdk\Support\SdkTestCase;

/**
 * Attributes in the view of handlers: the object records writes, save() commits them, and reads see the commits of
 * others.
 */
final class AttributesTest extends SdkTestCase
{
    public function testWhatIsNeverSavedIsDiscarded(): void
    {
        $id = $this->session();
        $session = $this->resolved($this->manager(), $id);
        $session->set('a', 1);
        self::assertSame(1, $session->get('a'));
        unset($session);
        self::assertFalse($this->resolved($this->manager(), $id)->has('a'));
    }

    public function testSaveCommitsJustTheKeysThatWereWritten(): void
    {
        $id = $this->session();
        $one = $this->resolved($this->manager(), $id);
        $other = $this->resolved($this->manager(), $id);
        $one->set('client.name', 'one');
        $one->set('gone', true);
        $other->set('client.version', 2);
        self::assertTrue($one->save());
        self::assertTrue($other->save());
        $one->forget('gone');
        self::assertTrue($one->save());
        $all = $this->resolved($this->manager(), $id)->all();
        self::assertSame(['client' => ['name' => 'one', 'version' => 2]], $all);
    }

    public function testAnotherRequestsWritesAppearBetweenTwoReadsAndOwnOnesLieOverThem(): void
    {
        $id = $this->session();
        $one = $this->resolved($this->manager(), $id);
        $other = $this->resolved($this->manager(), $id);
        $one->set('x.mine', 1);
        self::assertSame(['mine' => 1], $one->get('x'));
        $other->set('x.yours', 2);
        $other->set('x.mine', 3);
        $other->save();
        self::assertEquals(['mine' => 1, 'yours' => 2], $one->get('x'));
        self::assertSame(2, $one->get('x.yours'));
        self::assertEquals(['x' => ['mine' => 1, 'yours' => 2]], $one->all());
        $one->forget('x.yours');
        self::assertSame(['mine' => 1], $one->get('x'));
        self::assertFalse($one->has('x.yours'));
    }

    public function testAWriteOfAParentReplacesItsChildren(): void
    {
        $id = $this->session();
        $session = $this->resolved($this->manager(), $id);
        $session->set('a.b', 1);
        $session->set('a.c', 2);
        $session->save();
        $session->set('a.d', 3);
        $session->set('a', ['e' => 4]);
        $session->set('a.f.g', 5);
        $session->forget('a.e');
        self::assertSame(['f' => ['g' => 5]], $session->get('a'));
        $session->save();
        self::assertSame(['a' => ['f' => ['g' => 5]]], $this->resolved($this->manager(), $id)->all());
    }

    public function testARemovalThenAWriteBelowItLeavesJustThat(): void
    {
        $id = $this->session();
        $session = $this->resolved($this->manager(), $id);
        $session->set('a', ['b' => 1, 'c' => 2]);
        $session->save();
        $session->forget('a');
        self::assertNull($session->get('a'));
        $session->set('a.d', 3);
        self::assertSame(['d' => 3], $session->get('a'));
        $session->save();
        self::assertSame(['a' => ['d' => 3]], $session->all());
    }

    public function testListsAreReplacedNotMerged(): void
    {
        $id = $this->session();
        $one = $this->resolved($this->manager(), $id);
        $other = $this->resolved($this->manager(), $id);
        $one->set('list', ['a']);
        $other->set('list', ['b']);
        $one->save();
        $other->save();
        self::assertSame(['b'], $one->get('list'));
    }

    /** @return iterable<string, array{string, array<array-key, mixed>, array<array-key, mixed>}> */
    public function collections(): iterable
    {
        yield 'subscriptions' => ['resource_subscriptions', ['file:///a.b' => true], ['file:///c' => true]];
        yield 'a key that was named, a list' => ['tags', ['x'], ['y']];
    }

    /**
     * @dataProvider collections
     *
     * @param array<array-key, mixed> $one
     * @param array<array-key, mixed> $other
     */
    public function testCollectionsAreMergedElementByElement(string $key, array $one, array $other): void
    {
        $id = $this->session();
        $sessions = [];

        foreach ([$one, $other] as $elements) {
            $session = $this->resolved($this->manager(collections: ['tags']), $id);
            $session->set($key, \array_merge($session->get($key, []), $elements));
            $sessions[] = $session;
        }

        $sessions[0]->save();
        self::assertCount(2, $sessions[1]->get($key), 'read through what the other has saved');
        $sessions[1]->save();
        self::assertEqualsCanonicalizing(\array_merge($one, $other), $sessions[0]->get($key));

        // Removing one element keeps the other.
        $kept = $sessions[1]->get($key);
        $sessions[1]->set($key, \array_is_list($kept) ? ['x'] : \array_diff_key($kept, $other));
        $sessions[1]->save();
        self::assertSame($one, $this->resolved($this->manager(), $id)->get($key));
    }

    public function testPullGivesAValueToExactlyOneCaller(): void
    {
        $id = $this->session();
        $one = $this->resolved($this->manager(), $id);
        $other = $this->resolved($this->manager(), $id);
        $one->set('noted', 1);
        $one->set('ticket', 'T');
        self::assertSame('T', $one->pull('ticket'));
        self::assertSame(1, $other->get('noted'), 'what was noted is committed first');
        self::assertSame('none', $other->pull('ticket', 'none'));
    }

    public function testSettingWithoutOverwritingLetsExactlyOneSucceedAtOnce(): void
    {
        $id = $this->session();
        $one = $this->resolved($this->manager(), $id);
        $other = $this->resolved($this->manager(), $id);
        $one->set('who', null);
        $one->set('who', 'one', false);
        $other->set('who', 'other', false);
        self::assertSame('one', $other->get('who'));
    }

    public function testNullCountsAsAbsent(): void
    {
        $session = $this->resolved($this->manager(), $this->session());
        $session->set('n', null);
        $session->save();
        self::assertFalse($session->has('n'));
        self::assertSame('default', $session->get('n', 'default'));
        self::assertSame('default', $session->pull('n', 'default'));
    }

    public function testAllIsASnapshotWithoutWhatBelongsToOneRequest(): void
    {
        $session = $this->resolved($this->manager(), $this->session());
        $session->set('_mcp.logging_level', 'debug');
        $session->set(self::META, ['progressToken' => 1]);
        $this->ask($session);
        $session->set('a', 1);
        self::assertEquals(['_mcp' => ['logging_level' => 'debug'], 'a' => 1], $session->all());
        self::assertSame($session->all(), $session->jsonSerialize());
    }

    public function testUpdateLosesNobodysUpdate(): void
    {
        $id = $this->session();
        $one = $this->resolved($this->manager(), $id);
        $other = $this->resolved($this->manager(), $id);
        $runs = 0;
        $one->update('n', function (?int $n) use ($other, &$runs): int {
            if (++$runs === 1) {
                $other->update('n', static fn (?int $n): int => ($n ?? 0) + 1);
            }

            return ($n ?? 0) + 1;
        });
        self::assertSame([2, 2], [$one->get('n'), $runs]);
    }

    public function testHydrateTakesBackWhatThisObjectDidAndKeepsWhatOthersWrote(): void
    {
        $id = $this->session();
        $manager = $this->manager(blocking: false);
        $session = $this->resolved($manager, $id);
        $session->set('_mcp.logging_level', 'debug');
        $session->set('kept', 1);
        $this->queue($session, 'before');
        $before = $session->all();
        $session->set('mine', 'noted after');
        $asked = $this->ask($session);
        $other = $this->resolved($this->manager(), $id);
        $other->set('theirs', 1);
        $other->save();
        $session->hydrate($before);
        self::assertTrue($session->save());
        self::assertEquals(
            ['_mcp' => ['logging_level' => 'debug'], 'kept' => 1, 'theirs' => 1],
            $this->resolved($this->manager(), $id)->all(),
        );
        self::assertSame([self::row('before')], $manager->createWithId($id)->get(self::QUEUE, []));
        self::assertSame([], $manager->createWithId($id)->get(self::PENDING, []));
        $this->answer($id, $asked);
        self::assertTrue($this->log->has("request $asked is discarded: "));
    }

    public function testHydrateWritesOnlyWhatDiffersFromWhatThisObjectSaw(): void
    {
        $id = $this->session();
        $session = $this->resolved($this->manager(), $id);
        $session->set('a', ['x' => 1, 'y' => 2]);
        $session->set('b', 1);
        $session->save();
        $seen = $session->all();
        $other = $this->resolved($this->manager(), $id);
        $other->set('a.y', 3);
        $other->save();
        $session->hydrate(['a' => ['x' => 9] + $seen['a'], 'c' => 1]);
        $session->save();
        self::assertEquals(['a' => ['x' => 9, 'y' => 3], 'c' => 1], $session->all());
    }

    public function testClearRemovesAttributesAndLeavesTheSdksOwn(): void
    {
        $id = $this->session();
        $manager = $this->manager(blocking: false);
        $first = $this->resolved($manager, $id);
        $first->set('_mcp.logging_level', 'debug');
        $first->set('a', 1);
        $first->save();
        $this->queue($first, 'of another object');
        $session = $manager->createWithId($id);
        $session->clear();
        $session->save();
        self::assertSame(['_mcp' => ['logging_level' => 'debug']], $session->all());
        self::assertCount(1, $manager->createWithId($id)->get(self::QUEUE, []));
    }

    public function testObjectsAndWhatIsUnderClassNamesStayInTheRequestsMemory(): void
    {
        $id = $this->session();
        $manager = $this->manager();
        $session = $this->resolved($manager, $id);
        $secret = 'secret-' . \bin2hex(\random_bytes(8));
        $codec = new Codec($secret);
        $session->set('Mcp\Server\Stateless\RequestStateCodec', $codec);
        $session->set('Vendor\Scoped\Mcp\Server\Auth\AccessToken', ['token' => $secret]);
        $session->set('codec', $codec);
        $session->set('nested', ['deep' => [$codec]]);
        $session->set(self::META, ['progressToken' => $secret]);
        $session->set('client_capabilities', (object) ['elicitation' => new \stdClass()]);
        $session->set('marker', 'this-is-stored');
        self::assertTrue($session->save());
        self::assertSame($codec, $session->get('Mcp\Server\Stateless\RequestStateCodec'));
        self::assertSame($codec, $session->get('codec'));
        self::assertSame($secret, $session->get(self::META . '.progressToken'));
        self::assertSame($codec, $manager->createWithId($id)->get('Mcp\Server\Stateless\RequestStateCodec'));
        $session->hydrate($session->all());
        $session->save();
        self::assertStringContainsString('this-is-stored', $this->bytes());
        self::assertStringNotContainsString($secret, $this->bytes());
        $later = $this->resolved($this->manager(), $id);
        self::assertNull($later->get('codec'));
        self::assertNull($later->get(self::META));
        self::assertSame(['elicitation' => []], $later->get('client_capabilities'));
    }

    public function testMetadataOfOneRequestIsNotAnothers(): void
    {
        $manager = $this->manager(scope: new \McpState\Sdk\Scope\Stdio());
        $manager->gc();
        $id = $manager->create()->getId();
        $first = $this->resolved($manager, $id);
        $first->set(self::META, ['progressToken' => 'first']);
        $second = $this->resolved($manager, $id);
        $second->set(self::META, ['progressToken' => 'second']);
        $second->forget(self::META);
        self::assertSame(['progressToken' => 'first'], $first->get(self::META));
    }

    public function testIntegerKeysAndNumbersComeBackAsTheyWere(): void
    {
        $id = $this->session();
        $session = $this->resolved($this->manager(), $id);
        $session->set('v', [1000 => 'a', '7' => 1.0, 'x' => "\u{1F600}/é"]);
        $session->save();
        self::assertSame([1000 => 'a', 7 => 1.0, 'x' => "\u{1F600}/é"], $this->resolved($this->manager(), $id)->get('v'));
    }

    /** @return iterable<string, array{string, mixed, string}> */
    public function whatCannotBeKept(): iterable
    {
        yield 'a value that is not UTF-8' => ['text', "caf\xe9", 'JSON cannot express its value'];
        yield 'such a value far inside' => ['deep.list', [['x' => "\xff"]], 'JSON cannot express its value'];
        yield 'such a key inside' => ['map', ["\xff" => 1], 'JSON cannot express its value'];
        yield 'an element of a collection' => ['resource_subscriptions', ["\xff" => true], 'JSON cannot express its value'];
        yield 'no number' => ['number', \NAN, 'JSON cannot express its value'];
        yield 'too deep' => ['deep', self::nested(600), 'JSON cannot express its value'];
        yield 'NUL in the key' => ["bad\x00key", 1, 'the store does not accept its key'];
        yield 'a line break in the key' => ["bad\nkey", 1, 'the store does not accept its key'];
        yield 'a key that is not UTF-8' => ["caf\xe9", 1, 'the store does not accept its key'];
        yield 'an empty part' => ['a..b', 1, 'the store does not accept its key'];
        yield 'an empty part at the end' => ['a.', 1, 'the store does not accept its key'];
        yield 'an empty key' => ['', 1, 'the store does not accept its key'];
        yield 'a key of 256 bytes' => [\str_repeat('k', 256), 1, 'the store does not accept its key'];
    }

    /** @dataProvider whatCannotBeKept */
    public function testWhatCannotBeKeptMakesSaveSayFalseAndSpoilsNothingElse(string $key, mixed $value, string $why): void
    {
        $id = $this->session();
        $session = $this->resolved($this->manager(), $id);
        $session->set('fine', 'yes');
        $session->set($key, $value);
        $session->set('also', 'fine');
        self::assertSame(\is_float($value) ? null : $value, \is_float($value) ? null : $session->get($key), 'in this request');
        self::assertFalse($session->save());
        self::assertTrue($this->log->has('warning mcp-state: the attribute '), \implode("\n", $this->log->lines));
        self::assertTrue($this->log->has($why));
        self::assertSame(1, \preg_match('//u', \implode("\n", $this->log->lines)), 'the log is UTF-8');
        $kept = ['also' => 'fine', 'fine' => 'yes'];
        self::assertEquals($kept, $this->resolved($this->manager(), $id)->all());
        self::assertTrue($session->save(), 'it was told once');

        // Methods that commit at once still let the next save() report the lost write.
        $session->set($key, $value);
        $session->pull('nothing');
        self::assertFalse($session->save());
        $session->set($key, $value, false);
        self::assertFalse($session->save());

        // After the write has been reverted, save() succeeds.
        $session->set($key, $value);
        $session->forget($key);
        self::assertTrue($session->save());
        $session->set($key, $value);
        $session->hydrate($kept);
        self::assertTrue($session->save());
        self::assertEquals($kept, $this->resolved($this->manager(), $id)->all());
    }

    public function testPlainDataUnderTheNameOfAClassIsKept(): void
    {
        $id = $this->session();
        $session = $this->resolved($this->manager(), $id);
        $session->set('App\Cart', ['items' => [1, 2]]);
        $session->set('App\Mcp\Basket', 'full');
        $session->set('App\Live', new Codec('an object'));
        self::assertTrue($session->save());
        $later = $this->resolved($this->manager(), $id);
        self::assertSame(['items' => [1, 2]], $later->get('App\Cart'));
        self::assertSame([1, 2], $later->get('App\Cart.items'));
        self::assertSame('full', $later->get('App\Mcp\Basket'));
        self::assertNull($later->get('App\Live'));
        self::assertSame('full', $later->pull('App\Mcp\Basket'));
    }

    /** @return array<string, mixed> */
    private static function nested(int $depth): array
    {
        $value = [];

        for ($i = 0; $i < $depth; ++$i) {
            $value = ['x' => $value];
        }

        return $value;
    }

    public function testTheNormalEndOfTheFiberCommitsWhatTheHandlerWroteAfterItsQuestion(): void
    {
        $id = $this->session();
        $manager = $this->manager(blocking: false);
        $session = $this->resolved($manager, $id);
        $fiber = new \Fiber(static function () use ($session): void {
            \Fiber::suspend();
            $session->set('after', 1);
        });
        $fiber->start();
        $session->save();
        $manager->createWithId($id)->get(self::QUEUE, []);
        $manager->createWithId($id)->get(self::PENDING, []);
        $fiber->resume();
        unset($fiber, $session);
        self::assertSame(1, $this->resolved($this->manager(), $id)->get('after'));
    }

    public function testAFiberThatIsGivenUpCommitsNothing(): void
    {
        $id = $this->session();
        $manager = $this->manager(blocking: false);
        $session = $this->resolved($manager, $id);
        $fiber = new \Fiber(static function () use ($session): void {
            \Fiber::suspend();
            $session->set('after', 1);
            \Fiber::suspend();
        });
        $fiber->start();
        $session->save();
        $manager->createWithId($id)->get(self::QUEUE, []);
        $manager->createWithId($id)->get(self::PENDING, []);
        $fiber->resume();
        $manager->createWithId($id)->get(self::QUEUE, []);
        unset($fiber, $session);
        self::assertNull($this->resolved($this->manager(), $id)->get('after'));
    }
}
