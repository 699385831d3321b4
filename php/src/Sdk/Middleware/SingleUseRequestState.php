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
 * Lets each `requestState` (protocol revision 2026-07-28) be used once. The SDK signs and dates it, no more: whoever
 * replays it within its lifetime runs the second half of the tool again.
 *
 * The first request that brings it is served, in whatever process; every other gets HTTP 400 and error -32602, also one
 * that comes at the same time. So a client that lost the reply cannot simply repeat the request: use this where running
 * twice is worse. A store that cannot be asked is 503 with Retry-After, a body of more than 4 MiB 413.
 *
 * What is remembered is what the SDK signs, the part before the first dot: the signature behind it can be written in several
 * ways. So a state that is sent with a spoilt signature counts as used, unless `isValid` says that it is none of this
 * server's.
 */
final class SingleUseRequestState implements MiddlewareInterface
{
    private readonly Http $http;

    private readonly StoreSource $store;

    /**
     * @param Store|\Closure(): Store        $store   a store, or what opens it when it is first needed
     * @param int                            $ttlMs   how long a used state is remembered, in milliseconds: at least the
     *                                                lifetime that the server gives it, the SDK's default being 600,000
     * @param (\Closure(string): bool)|null  $isValid whether a state is one that this server signed: others are left for
     *                                                the SDK to refuse, and need not be remembered
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
