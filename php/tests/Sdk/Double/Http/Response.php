<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk\Double\Http;

use Psr\Http\Message\ResponseInterface;

final class Response implements ResponseInterface
{
    use Message;

    public function __construct(private readonly int $status, string $body = '')
    {
        $this->body = new Stream($body);
    }

    public function getStatusCode(): int
    {
        return $this->status;
    }
}
