<?php

declare(strict_types=1);

namespace McpState\Tests\Contract;

/** The notification bus, and single-use keys. */
trait BusContract
{
    private static function topic(): string
    {
        return 'topic-' . \bin2hex(\random_bytes(4));
    }

    public function testEveryReaderSeesAllMessagesInOneOrder(): void
    {
        $store = $this->createStore();
        $topic = self::topic();

        self::assertSame(0, $store->cursor($topic));
        $first = $store->publish($topic, 'one');
        self::assertSame($first + 1, $store->publish($topic, 'two'));
        self::assertSame($first + 2, $store->publish($topic, "\u{e9}"));
        self::assertSame($first + 2, $store->cursor($topic));

        foreach (['a reader', 'another'] as $reader) {
            $entries = $store->since($topic, 0);
            self::assertSame(['one', 'two', "\u{e9}"], \array_column($entries->messages, 'message'), $reader);
            self::assertSame([$first, $first + 1, $first + 2], \array_column($entries->messages, 'number'));
            self::assertSame([$first + 2, 0], [$entries->cursor, $entries->missed]);
        }
    }

    public function testAReaderReadsOnFromItsCursor(): void
    {
        $store = $this->createStore();
        $topic = self::topic();

        foreach (['1', '2', '3'] as $message) {
            $store->publish($topic, $message);
        }

        $some = $store->since($topic, 0, 2);
        self::assertSame(['1', '2'], \array_column($some->messages, 'message'));
        $rest = $store->since($topic, $some->cursor, 2);
        self::assertSame(['3'], \array_column($rest->messages, 'message'));
        $none = $store->since($topic, $rest->cursor);
        self::assertSame([[], $rest->cursor, 0], [$none->messages, $none->cursor, $none->missed]);
    }

    public function testTopicsAreSeparate(): void
    {
        $store = $this->createStore();
        $one = self::topic();
        $store->publish($one, 'one');

        self::assertSame([], $store->since(self::topic(), 0)->messages);
    }

    public function testAReaderThatFellBehindIsToldSo(): void
    {
        $store = $this->createStore('max_topic_messages=3');
        $topic = self::topic();

        for ($i = 1; $i <= 5; ++$i) {
            $store->publish($topic, (string) $i);
        }

        $entries = $store->since($topic, 0);
        self::assertSame(['3', '4', '5'], \array_column($entries->messages, 'message'));
        self::assertSame(2, $entries->missed);
    }

    public function testWaitSinceSaysWhetherThereIsAMessage(): void
    {
        $store = $this->createStore();
        $topic = self::topic();

        self::assertFalse($store->waitSince($topic, 0, 1));
        $number = $store->publish($topic, 'm');
        self::assertTrue($store->waitSince($topic, 0, 1000));
        self::assertFalse($store->waitSince($topic, $number, 1));
    }

    public function testAKeyIsConsumedOnceUntilItsTimeIsOver(): void
    {
        $store = $this->createStore();
        $key = self::topic();

        self::assertTrue($store->consumeOnce($key, 60_000));
        self::assertFalse($store->consumeOnce($key, 60_000));
        self::assertTrue($store->consumeOnce("$key'", 1));
        self::eventually(static fn (): bool => $store->consumeOnce("$key'", 1));
    }
}
