<?php

declare(strict_types=1);

namespace McpState\Sdk\Middleware;

use McpState\Exception\InvalidArgument;
use McpState\Internal\StoreSource;
use McpState\Sdk\Internal\Http;
use McpState\Store;
use Psr\Http\Message\ResponseFactoryInterface;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Message\StreamFactoryInterface;
use Psr\Http\Server\MiddlewareInterface;
use Psr\Http\Server\RequestHandlerInterface;

/**
 * Accepts each `requestState` (protocol revision 2026-07-28) only once. The SDK only signs and dates it, so a client
 * that replays it within its lifetime runs the second half of the tool again.
 *
 * The server serves the first request with a given state, across all processes. Every other request receives HTTP 400
 * and error -32602, even at the same moment (G1). A client that lost the reply therefore cannot repeat the request: use
 * this middleware if running a tool twice is worse. If the store fails, the response is HTTP 503 with Retry-After. For
 * a body of more than 4 MiB it is 413.
 *
 * The store remembers only the signed part, before the first dot, because a signature has several valid encodings. A
 * state with an invalid signature therefore counts as used, unless `isValid` reports that this server did not sign it.
 */
final class SingleUseRequestState implements MiddlewareInterface
{
    private readonly Http $http;

    private readonly StoreSource $store;

    /**
     * @param Store|\Closure(): Store       $store   a store, or a closure that opens it on first use
     * @param int                           $ttlMs   milliseconds that the store remembers a used state: at least the
     *                                               lifetime that the server gives a state, which is 600,000 by default
     *                                               in the SDK
     * @param (\Closure(string): bool)|null $isValid tells whether this server signed a state. The SDK refuses the
     *                                               others, so the store does not remember them
     *
     * @throws InvalidArgument if $ttlMs is less than 1
     */
    public function __construct(
        #[\SensitiveParameter] Store|\Closure $store,
        private readonly int $ttlMs = 600_000,
        private readonly ?\Closure $isValid = null,
        ?ResponseFactoryInterface $responses = null,
        ?StreamFactoryInterface $streams = null,
    ) {
        if ($ttlMs < 1) {
            throw new InvalidArgument("a ttlMs of $ttlMs is not valid: it must be 1 or more");
        }

        $this->store = new StoreSource($store);
        $this->http = new Http($responses, $streams);
    }

    /** Refuses the request if its state was used, otherwise serves it. */
    public function process(ServerRequestInterface $request, RequestHandlerInterface $handler): ResponseInterface
    {
        return $this->http->orUnavailable(function () use ($request, $handler): ResponseInterface {
            [$messages, $request] = $this->http->messages($request);

            foreach ($messages as $message) {
                $state = \is_array($message['params'] ?? null) ? $message['params']['requestState'] ?? null : null;

                if (\is_string($state) && !$this->isFirstUse($state)) {
                    $id = $message['id'] ?? null;

                    return $this->http->error(400, -32602, 'This requestState has been used.', $id);
                }
            }

            return $handler->handle($request);
        });
    }

    private function isFirstUse(string $state): bool
    {
        if ($this->isValid !== null && !($this->isValid)($state)) {
            return true;
        }

        $signed = \explode('.', $state, 2)[0];

        return $this->store->get()->consumeOnce('requestState.' . \hash('sha256', $signed), $this->ttlMs);
    }
}
