<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk\Double\Http;

use Psr\Http\Message\MessageInterface;
use Psr\Http\Message\StreamInterface;

/** The part of PSR-7 that the middleware uses, for tests without a PSR-7 library. */
trait Message
{
    /** @var array<string, string> */
    private array $headers = [];

    private StreamInterface $body;

    public function getHeaderLine(string $name): string
    {
        return $this->headers[\strtolower($name)] ?? '';
    }

    public function withHeader(string $name, $value): MessageInterface
    {
        $changed = clone $this;
        $changed->headers[\strtolower($name)] = $value;

        return $changed;
    }

    public function getBody(): StreamInterface
    {
        return $this->body;
    }

    public function withBody(StreamInterface $body): MessageInterface
    {
        $changed = clone $this;
        $changed->body = $body;

        return $changed;
    }
}
