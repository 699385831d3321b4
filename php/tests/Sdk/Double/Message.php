<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk\Double;

/** A message in the SDK's form. A request to the client has no id before the SDK sends it. */
final class Message
{
    public readonly int|string|null $requestId;

    /** @param array<string, mixed> $data */
    public function __construct(public readonly array $data)
    {
        $this->requestId = $data['params']['requestId'] ?? null;
    }

    public function getId(): int|string
    {
        return $this->data['id'] ?? throw new \Error('the message has no id');
    }

    public function getMethod(): ?string
    {
        return $this->data['method'] ?? null;
    }
}
