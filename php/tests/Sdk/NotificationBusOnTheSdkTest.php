<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk;

use Mcp\Schema\Notification\ToolListChangedNotification;
use Mcp\Server\Subscription\NotificationBusInterface;
use McpState\Sdk\NotificationBus;
use McpState\Tests\Sdk\Support\SdkTestCase;

/** The bus with the SDK's own notifications, if the SDK is installed and has a bus. */
final class NotificationBusOnTheSdkTest extends SdkTestCase
{
    public function testANotificationComesBackAsTheObjectItWas(): void
    {
        if (!\class_exists(ToolListChangedNotification::class) || !\interface_exists(NotificationBusInterface::class)) {
            self::markTestSkipped('the SDK is not installed (MCP_SDK_AUTOLOAD), or has no notification bus');
        }

        $bus = new NotificationBus($this->store());
        $cursor = $bus->cursor();
        $bus->publish(new ToolListChangedNotification());
        [$notifications] = $bus->since($cursor);
        self::assertInstanceOf(ToolListChangedNotification::class, $notifications[0]);
    }
}
