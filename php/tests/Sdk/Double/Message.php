<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk\Double;

/** A message of the client, as the SDK hands it from function to function. */
final class Message
{
    public readonly int|string|null $requestId;

    /** @param array<string, mixed> $data */
    public function __construct(public readonly array $data)
    {
        $this->requestId = $data['params']['requestId'] ?? null;
    }

    public function getId(): int|string|null
    {
        return $this->data['id'] ?? null;
    }

    public function getMethod(): ?string
    {
        return $this->data['method'] ?? null;
    }
}
