<?php

declare(strict_types=1);

namespace McpState\Sdk;

use Mcp\Server\Transport\StreamableHttpTransport as SdkTransport;
use McpState\Exception\InvalidArgument;
use McpState\Sdk\Internal\AtEndStream;
use McpState\Sdk\Internal\BodyTooLong;
use McpState\Sdk\Internal\ClientGone;
use McpState\Sdk\Internal\Http;
use Psr\Http\Message\ResponseFactoryInterface;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Message\StreamFactoryInterface;

/**
 * The SDK's transport, with streams that send keep-alives and notice when the client has disconnected.
 *
 *     $server->run(new StreamableHttpTransport($sessions, $request))
 *
 * The guarantees do not depend on it. While a tool waits for its client, the SDK's own transport writes nothing: nginx
 * closes such a stream after 60 seconds (`fastcgi_read_timeout`), and PHP notices a disconnected client only when it
 * writes. This transport writes a comment, which clients skip, every $keepAliveMs milliseconds. If the client has
 * disconnected, the wait of the tool ends, and the response to its question is late (G4). This requires a session
 * manager that blocks; with others, streams behave as in the SDK.
 *
 * If the store is unavailable or full, or has no room for another session, the response is HTTP 503 with Retry-After
 * and a JSON-RPC error.
 */
final class StreamableHttpTransport extends SdkTransport
{
    private readonly Http $http;

    /** @var list<array<array-key, mixed>> the client's JSON-RPC messages */
    private array $messages = [];

    private ?BodyTooLong $bodyTooLong = null;

    /**
     * @param int   $keepAliveMs  the interval, in milliseconds, at which a waiting stream writes a comment
     * @param mixed ...$arguments the arguments of the SDK's transport after the request, by name or in order
     *
     * @throws InvalidArgument if $keepAliveMs is less than 1
     */
    public function __construct(
        private readonly SessionManager $sessions,
        ServerRequestInterface $request,
        private readonly int $keepAliveMs = 15_000,
        mixed ...$arguments,
    ) {
        if ($keepAliveMs < 1) {
            throw new InvalidArgument("a keepAliveMs of $keepAliveMs is not valid: it must be 1 or more");
        }

        $find = static fn (string $class): mixed =>
            \current(\array_filter($arguments, static fn (mixed $each): bool => $each instanceof $class)) ?: null;
        $this->http = new Http($find(ResponseFactoryInterface::class), $find(StreamFactoryInterface::class));

        try {
            [$this->messages, $request] = $this->http->messages($request);
        } catch (BodyTooLong $e) {
            $this->bodyTooLong = $e;
        }

        parent::__construct($request, ...$arguments);
    }

    /**
     * Serves the request. Replaces the SDK's response with HTTP 503 if the store refused the message, and with 413 if
     * the body exceeds 4 MiB.
     */
    public function listen(): ResponseInterface
    {
        $this->sessions->serves($this->messages);

        return $this->http->orUnavailable(
            fn (): ResponseInterface => $this->bodyTooLong === null ? parent::listen() : throw $this->bodyTooLong,
            $this->sessions,
            $this->messages,
        );
    }

    protected function createStreamedResponse(): ResponseInterface
    {
        $response = parent::createStreamedResponse();
        $wroteAt = \hrtime(true);

        $this->sessions->whileWaiting(function () use (&$wroteAt): void {
            if (\hrtime(true) - $wroteAt >= 1_000_000 * $this->keepAliveMs) {
                $wroteAt = \hrtime(true);
                $this->keepAlive();
            }
        });

        return $response->withBody(new AtEndStream($response->getBody(), function (): void {
            $this->sessions->whileWaiting(null);
            $this->sessions->release();
        }));
    }

    /** @throws ClientGone if PHP continues after the client has disconnected (`ignore_user_abort`) */
    private function keepAlive(): void
    {
        echo ": keep-alive\n\n";

        if (\ob_get_level() > 0) {
            @\ob_flush();
        }

        \flush();

        if (\connection_aborted() === 1) {
            throw new ClientGone('the client has closed the stream');
        }
    }
}
