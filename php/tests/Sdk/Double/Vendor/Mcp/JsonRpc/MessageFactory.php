<?php

declare(strict_types=1);

namespace Mcp\JsonRpc;

use Mcp\Schema\JsonRpc\Notification;

final class MessageFactory
{
    public static function make(): self
    {
        return new self();
    }

    /** @return list<Notification> */
    public function create(string $input): array
    {
        $message = \json_decode($input, true, flags: \JSON_THROW_ON_ERROR);

        return [new Notification($message['method'], $message['params'])];
    }
}
