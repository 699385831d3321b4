<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk;

use Mcp\Schema\JsonRpc\Notification;
use McpState\Exception\StoreUnavailable;
use McpState\Sdk\NotificationBus;
use McpState\Store;
use McpState\Tests\Sdk\Support\SdkTestCase;
use McpState\Tests\Support\Child;

/** Scenario O (the notification bus) through the SDK's interface. */
final class NotificationBusTest extends SdkTestCase
{
    /** The beginning of a child's code, which creates the bus. */
    private const CHILD = 'require "%s"; $bus = new Sdk\NotificationBus($store);';

    protected function setUp(): void
    {
        parent::setUp();

        if (\getenv('MCP_SDK_AUTOLOAD')) {
            self::markTestSkipped('the notifications of this test are the double\'s; NotificationBusOnTheSdkTest has the SDK\'s');
        }
    }

    public function testAReaderGetsWhatIsPublishedAfterItsCursorAndNothingBefore(): void
    {
        $bus = new NotificationBus($this->store());
        $bus->publish(new Notification('notifications/before'));
        $cursor = $bus->cursor();
        self::assertSame([[], $cursor], $bus->since($cursor));
        $bus->publish(new Notification('notifications/a', ['n' => 1]));
        $bus->publish(new Notification('notifications/b'));
        [$notifications, $next] = (new NotificationBus($this->store()))->since($cursor);
        self::assertSame(['notifications/a', 'notifications/b'], \array_column($notifications, 'method'));
        self::assertSame(['n' => 1], $notifications[0]->params);
        self::assertSame([[], $next], $bus->since($next));
    }

    public function testFourPublishersAndTwoReadersEachGetAllInOneOrderOnce(): void
    {
        $setUp = \sprintf(self::CHILD, __DIR__ . '/autoload.php');
        $each = 500;
        $reader = $setUp . '
            $cursor = 0;
            $seen = [];
            while (count($seen) < (int) $args[0]) {
                [$notifications, $cursor] = $bus->since($cursor);
                foreach ($notifications as $n) {
                    $seen[] = $n->params["from"] . ":" . $n->params["n"];
                }
                $store->waitSince("mcp.notifications", $cursor, 1000);
            }
            say(implode(",", $seen));
        ';
        $publisher = $setUp . '
            for ($n = 0; $n < (int) $args[1]; ++$n) {
                $bus->publish(new \Mcp\Schema\JsonRpc\Notification("x", ["from" => $args[0], "n" => $n]));
            }
        ';
        $readers = [];

        foreach ([1, 2] as $_) {
            $readers[] = Child::start($reader, $this->dsn(), (string) (4 * $each));
        }

        $publishers = [];

        foreach (['a', 'b', 'c', 'd'] as $name) {
            $publishers[] = Child::start($publisher, $this->dsn(), $name, (string) $each);
        }

        $seen = \explode(',', $readers[0]->hear());
        self::assertSame($seen, \explode(',', $readers[1]->hear()), 'one order for all');
        self::assertCount(4 * $each, \array_unique($seen));

        foreach (['a', 'b', 'c', 'd'] as $name) {
            $own = \array_values(\array_filter($seen, static fn (string $n): bool => $n[0] === $name));
            self::assertSame(\array_map(static fn (int $n): string => "$name:$n", \range(0, $each - 1)), $own);
        }

        foreach ([...$readers, ...$publishers] as $child) {
            self::assertSame(0, $child->end());
        }
    }

    public function testAReaderThatFellBehindGoesOnWithWhatIsThereAndTheLogSaysSo(): void
    {
        $store = Store::open($this->dsn('&max_topic_messages=10'));
        $bus = new NotificationBus($store, logger: $this->log);
        $bus->publish(new Notification('first'));
        $cursor = $bus->cursor();

        for ($n = 0; $n < 25; ++$n) {
            $bus->publish(new Notification('x', ['n' => $n]));
        }

        [$notifications] = $bus->since($cursor);
        self::assertSame(\range(15, 24), \array_column(\array_column($notifications, 'params'), 'n'));
        self::assertTrue($this->log->has('missed 15 notifications'));
    }

    public function testTopicsAreApart(): void
    {
        $bus = new NotificationBus($this->store(), 'one');
        $other = new NotificationBus($this->store(), 'other');
        $bus->publish(new Notification('x'));
        self::assertSame([], $other->since(0)[0]);
    }

    public function testAnUnreachableStoreLeavesTheReaderWhereItIs(): void
    {
        $bus = new NotificationBus(static fn () => throw new StoreUnavailable('no such device'), logger: $this->log);
        self::assertSame([[], 7], $bus->since(7));
        self::assertTrue($this->log->has('no such device'));
        $this->expectException(StoreUnavailable::class);
        $bus->publish(new Notification('x'));
    }
}
