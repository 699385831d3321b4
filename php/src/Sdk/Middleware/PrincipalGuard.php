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
 * Binds sessions to whoever the application says is calling: a session is there only for the principal that opened it
 * (G12). For everybody else, and for callers that nobody vouches for, the SDK answers as for a session that never was.
 *
 *     new PrincipalGuard($sessions, fn ($request) => $request->getAttribute('user')?->id)
 *
 * It must run after what authenticates the caller. A store that cannot be asked is 503 with Retry-After, never the 404
 * that makes a client start over.
 */
final class PrincipalGuard implements MiddlewareInterface
{
    private readonly Http $http;

    /** @param \Closure(ServerRequestInterface): ?string $principal who is calling; null: nobody in particular */
    public function __construct(
        private readonly SessionManager $sessions,
        private readonly \Closure $principal,
        ?ResponseFactoryInterface $responses = null,
        ?StreamFactoryInterface $streams = null,
    ) {
        $this->http = new Http($responses, $streams);
    }

    public function process(ServerRequestInterface $request, RequestHandlerInterface $handler): ResponseInterface
    {
        $this->sessions->actFor(($this->principal)($request));

        return $this->http->orUnavailable(function () use ($request, $handler): ResponseInterface {
            $sessionId = $request->getHeaderLine('Mcp-Session-Id');

            if ($sessionId !== '') {
                $this->sessions->find($sessionId); // Throws when the store cannot be asked.
            }

            return $handler->handle($request);
        }, $this->sessions);
    }
}
