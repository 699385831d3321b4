<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk\Double\Http;

use Psr\Http\Message\ResponseFactoryInterface;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\StreamFactoryInterface;
use Psr\Http\Message\StreamInterface;

final class Factory implements ResponseFactoryInterface, StreamFactoryInterface
{
    public function createResponse(int $code = 200, string $reasonPhrase = ''): ResponseInterface
    {
        return new Response($code);
    }

    public function createStream(string $content = ''): StreamInterface
    {
        return new Stream($content);
    }
}
