<?php

declare(strict_types=1);

namespace McpState\Sdk\Middleware;

use McpState\Sdk\Internal\Http;
use McpState\Sdk\SessionManager;
use Psr\Http\Message\ResponseFactoryInterface;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Message\StreamFactoryInterface;
use Psr\Http\Server\MiddlewareInterface;
use Psr\Http\Server\RequestHandlerInterface;

/**
 * Responds with HTTP 503, Retry-After and a JSON-RPC error if the store is unavailable or full, or has no room for
 * another session. The SDK's own transport responds with 200 or 500 in most of these cases.
 * {@see \McpState\Sdk\StreamableHttpTransport} does the same without this middleware.
 *
 *     new StreamableHttpTransport($request, middleware: [
 *         new ServiceUnavailable($sessions),
 *         ...StreamableHttpTransport::defaultMiddleware(),
 *     ])
 *
 * A stream that has begun stays unchanged: its tool receives the failure.
 */
final class ServiceUnavailable implements MiddlewareInterface
{
    private readonly Http $http;

    public function __construct(
        private readonly SessionManager $sessions,
        ?ResponseFactoryInterface $responses = null,
        ?StreamFactoryInterface $streams = null,
    ) {
        $this->http = new Http($responses, $streams);
    }

    /** Serves the request, and replaces the response if the store refused the message. */
    public function process(ServerRequestInterface $request, RequestHandlerInterface $handler): ResponseInterface
    {
        return $this->http->serve(
            $this->sessions,
            $request,
            static fn (array $messages, ServerRequestInterface $request): ResponseInterface => $handler->handle($request),
        );
    }
}
