<?php

declare(strict_types=1);

namespace McpState\Sdk\Middleware;

use McpState\DuplicatePolicy;
use McpState\Owner;
use McpState\OwnerKind;
use McpState\Sdk\Internal\AtEndStream;
use McpState\Sdk\Internal\Http;
use McpState\Sdk\SessionManager;
use Psr\Http\Message\ResponseFactoryInterface;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Message\StreamFactoryInterface;
use Psr\Http\Server\MiddlewareInterface;
use Psr\Http\Server\RequestHandlerInterface;

/**
 * Refuses a request whose JSON-RPC id another request of the session is still being served under: HTTP 409, error -32600,
 * the id echoed. Without it both are served, and each gets its own answer (G6); some clients send every request under one
 * id and need that.
 *
 *     new StreamableHttpTransport($request, middleware: [
 *         ...StreamableHttpTransport::defaultMiddleware(),
 *         new RejectDuplicateRequests($sessions),
 *     ])
 *
 * An id is free again when its response has been sent. Ids are typed: `1` is not `"1"`. A store that cannot be asked is
 * 503 with Retry-After, a body of more than 4 MiB 413.
 */
final class RejectDuplicateRequests implements MiddlewareInterface
{
    /** How long, in milliseconds, a stream that has sent its result may take to end before its id counts as in use. */
    private const GRACE_MS = 100;
    private const GRACE_STEP_MS = 5;

    private readonly Http $http;

    public function __construct(
        private readonly SessionManager $sessions,
        ?ResponseFactoryInterface $responses = null,
        ?StreamFactoryInterface $streams = null,
    ) {
        $this->http = new Http($responses, $streams);
    }

    public function process(ServerRequestInterface $request, RequestHandlerInterface $handler): ResponseInterface
    {
        return $this->http->serve(
            $this->sessions,
            $request,
            fn (array $messages, ServerRequestInterface $request): ResponseInterface =>
                $this->serve($messages, $request, $handler),
        );
    }

    /** @param list<array<array-key, mixed>> $messages */
    private function serve(
        array $messages,
        ServerRequestInterface $request,
        RequestHandlerInterface $handler,
    ): ResponseInterface {
        $sessionId = $request->getHeaderLine('Mcp-Session-Id');
        $ids = self::requestIds($messages);
        $session = $ids === [] || $sessionId === '' ? null : $this->sessions->find($sessionId);

        if ($session === null) {
            return $handler->handle($request);
        }

        $owner = $session->attach(OwnerKind::Reply);
        $isServed = false;

        try {
            foreach ($ids as $id) {
                if (!self::begin($owner, $id)) {
                    return $this->http->error(409, -32600, 'A request with this id is in flight.', $id);
                }
            }

            $this->sessions->holdRequests($owner);
            $response = $handler->handle($request);
            $isServed = \str_starts_with($response->getHeaderLine('Content-Type'), 'text/event-stream');

            return $isServed
                ? $response->withBody(new AtEndStream($response->getBody(), fn () => $this->end($owner)))
                : $response;
        } finally {
            if (!$isServed) {
                $this->sessions->holdRequests(null);
                $owner->detach();
            }
        }
    }

    /** The stream has been read: the exchange is over, and its ids are free. */
    private function end(Owner $owner): void
    {
        $this->sessions->holdRequests(null);
        $this->sessions->release();
        $owner->detach();
    }

    private static function begin(Owner $owner, int|string $id): bool
    {
        for ($waitedMs = 0; !$owner->beginRequest($id, DuplicatePolicy::Reject); $waitedMs += self::GRACE_STEP_MS) {
            if ($waitedMs >= self::GRACE_MS) {
                return false;
            }

            \usleep(1000 * self::GRACE_STEP_MS);
        }

        return true;
    }

    /**
     * @param list<array<array-key, mixed>> $messages
     *
     * @return list<int|string>
     */
    private static function requestIds(array $messages): array
    {
        $ids = [];

        foreach ($messages as $message) {
            $id = $message['id'] ?? null;

            if (isset($message['method']) && (\is_int($id) || \is_string($id))) {
                $ids[] = $id;
            }
        }

        return $ids;
    }
}
