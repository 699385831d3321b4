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
 * Refuses a request if another request of the session with the same JSON-RPC id is in flight (G6), with HTTP 409, error
 * -32600 and the id. Without this middleware the server serves both, and each receives its own response; clients that
 * send every request with the same id depend on that.
 *
 *     new StreamableHttpTransport($request, middleware: [
 *         ...StreamableHttpTransport::defaultMiddleware(),
 *         new RejectDuplicateRequests($sessions),
 *     ])
 *
 * An id is free again once its response has been sent. Ids are typed: `1` is not `"1"`. If the store fails, the
 * response is HTTP 503 with Retry-After. For a body of more than 4 MiB it is 413.
 */
final class RejectDuplicateRequests implements MiddlewareInterface
{
    /** Milliseconds that a stream which has sent its result has left to end before its id counts as a duplicate. */
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

    /** Refuses the request, or serves it while its ids are in flight. */
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

            $this->sessions->setInFlightOwner($owner);
            $response = $handler->handle($request);
            $isServed = \str_starts_with($response->getHeaderLine('Content-Type'), 'text/event-stream');

            return $isServed
                ? $response->withBody(new AtEndStream($response->getBody(), fn () => $this->end($owner)))
                : $response;
        } finally {
            if (!$isServed) {
                $this->sessions->setInFlightOwner(null);
                $owner->detach();
            }
        }
    }

    /** Ends the exchange after its response has been read, which frees its ids. */
    private function end(Owner $owner): void
    {
        $this->sessions->setInFlightOwner(null);
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
