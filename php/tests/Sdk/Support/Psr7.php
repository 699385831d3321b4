<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk\Support;

use Http\Discovery\Psr17FactoryDiscovery;
use McpState\Tests\Sdk\Double\Http\Factory;
use McpState\Tests\Sdk\Double\Http\Request;
use Psr\Http\Message\ResponseFactoryInterface;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Message\StreamFactoryInterface;

/** Creates messages with the PSR-7 library of the SDK, or with the double. */
final class Psr7
{
    public static function isReal(): bool
    {
        return \class_exists(Psr17FactoryDiscovery::class);
    }

    public static function responses(): ResponseFactoryInterface
    {
        return self::isReal() ? Psr17FactoryDiscovery::findResponseFactory() : new Factory();
    }

    public static function streams(): StreamFactoryInterface
    {
        return self::isReal() ? Psr17FactoryDiscovery::findStreamFactory() : new Factory();
    }

    public static function post(string $body = '', string $sessionId = ''): ServerRequestInterface
    {
        if (!self::isReal()) {
            return new Request('POST', $body, $sessionId);
        }

        return Psr17FactoryDiscovery::findServerRequestFactory()
            ->createServerRequest('POST', 'http://localhost/mcp')
            ->withHeader('Mcp-Session-Id', $sessionId)
            ->withBody(self::streams()->createStream($body));
    }

    public static function response(string $body = '', string $type = 'application/json'): ResponseInterface
    {
        return self::responses()->createResponse(200)
            ->withHeader('Content-Type', $type)
            ->withBody(self::streams()->createStream($body));
    }
}
