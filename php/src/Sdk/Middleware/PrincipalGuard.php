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
 * Binds sessions to the principal that the application authenticates: a session exists only for the principal that
 * created it (G12). For all other callers, with or without a principal, the SDK responds as if the session never
 * existed.
 *
 *     new PrincipalGuard($sessions, fn ($request) => $request->getAttribute('user')?->id)
 *
 * This middleware must run after the one that authenticates the caller. If the store fails, the response is HTTP 503
 * with Retry-After, and never 404, which would make the client start a new session.
 */
final class PrincipalGuard implements MiddlewareInterface
{
    private readonly Http $http;

    /**
     * @param \Closure(ServerRequestInterface): ?string $principal returns the principal of the caller; null: no
     *                                                             principal
     */
    public function __construct(
        private readonly SessionManager $sessions,
        private readonly \Closure $principal,
        ?ResponseFactoryInterface $responses = null,
        ?StreamFactoryInterface $streams = null,
    ) {
        $this->http = new Http($responses, $streams);
    }

    /** Serves the request for its principal. */
    public function process(ServerRequestInterface $request, RequestHandlerInterface $handler): ResponseInterface
    {
        $this->sessions->actFor(($this->principal)($request));

        return $this->http->orUnavailable(function () use ($request, $handler): ResponseInterface {
            $sessionId = $request->getHeaderLine('Mcp-Session-Id');

            if ($sessionId !== '') {
                $this->sessions->find($sessionId); // Throws if the store fails.
            }

            return $handler->handle($request);
        }, $this->sessions);
    }
}
