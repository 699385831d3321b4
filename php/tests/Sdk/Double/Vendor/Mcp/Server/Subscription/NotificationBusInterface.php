<?php

declare(strict_types=1);

namespace Mcp\Server\Subscription;

use Mcp\Schema\JsonRpc\Notification;

interface NotificationBusInterface
{
    public function publish(Notification $notification): void;

    public function cursor(): int;

    public function since(int $cursor): array;
}
