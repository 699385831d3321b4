<?php

declare(strict_types=1);

namespace Mcp\Schema\JsonRpc;

/** In the SDK every notification has its own class. This double has only a method and parameters. */
class Notification implements \JsonSerializable
{
    public function __construct(public readonly string $method, public readonly array $params = [])
    {
    }

    public function jsonSerialize(): array
    {
        return ['jsonrpc' => '2.0', 'method' => $this->method, 'params' => $this->params];
    }
}
