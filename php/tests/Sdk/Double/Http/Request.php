<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk\Double\Http;

use Psr\Http\Message\ServerRequestInterface;

final class Request implements ServerRequestInterface
{
    use Message;

    public function __construct(private readonly string $method, string $body = '', string $sessionId = '')
    {
        $this->body = new Stream($body);
        $this->headers = ['mcp-session-id' => $sessionId];
    }

    public function getMethod(): string
    {
        return $this->method;
    }

    public function getAttribute(string $name, $default = null)
    {
        return $default;
    }
}
