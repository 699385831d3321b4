<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

use Http\Discovery\Psr17FactoryDiscovery;
use McpState\Exception\InvalidArgument;
use McpState\Sdk\SessionManager;
use Psr\Http\Message\ResponseFactoryInterface;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Message\StreamFactoryInterface;
use Psr\Http\Message\StreamInterface;

/**
 * The shared part of the middleware: it reads JSON-RPC messages and creates error responses.
 *
 * @internal
 */
final class Http
{
    /**
     * The limit for the body of a request. The middleware cannot check a longer body, so it refuses the request. The
     * SDK's own default limit is the same.
     */
    private const MAX_BODY_BYTES = 4 * 1024 * 1024;

    private readonly ResponseFactoryInterface $responses;

    private readonly StreamFactoryInterface $streams;

    /** @throws InvalidArgument if a factory is neither passed nor discovered */
    public function __construct(?ResponseFactoryInterface $responses, ?StreamFactoryInterface $streams)
    {
        if (($responses === null || $streams === null) && !\class_exists(Psr17FactoryDiscovery::class)) {
            throw new InvalidArgument(
                'no PSR-17 factories: pass a response factory and a stream factory, or install php-http/discovery'
            );
        }

        $this->responses = $responses ?? Psr17FactoryDiscovery::findResponseFactory();
        $this->streams = $streams ?? Psr17FactoryDiscovery::findStreamFactory();
    }

    /**
     * Returns the JSON-RPC messages of the request, and the request with a body that can be read again.
     *
     * @return array{list<array<array-key, mixed>>, ServerRequestInterface}
     *
     * @throws BodyTooLong for {@see orUnavailable()}
     */
    public function messages(ServerRequestInterface $request): array
    {
        if ($request->getMethod() !== 'POST') {
            return [[], $request];
        }

        $body = $request->getBody();
        $text = self::read($body);

        if ($body->isSeekable()) {
            $body->rewind();
        } else {
            $request = $request->withBody($this->streams->createStream($text));
        }

        $decoded = \json_decode($text, true);
        $messages = \is_array($decoded) && \array_is_list($decoded) ? $decoded : [$decoded];

        return [\array_values(\array_filter($messages, 'is_array')), $request];
    }

    /**
     * Passes the messages and the request to $do, within {@see orUnavailable()}, and describes the messages to the
     * manager.
     *
     * @param \Closure(list<array<array-key, mixed>>, ServerRequestInterface): ResponseInterface $do
     */
    public function serve(SessionManager $sessions, ServerRequestInterface $request, \Closure $do): ResponseInterface
    {
        $messages = [];

        return $this->orUnavailable(function () use ($sessions, $request, $do, &$messages): ResponseInterface {
            [$messages, $request] = $this->messages($request);
            $sessions->serves($messages);

            return $do($messages, $request);
        }, $sessions, $messages);
    }

    private static function read(StreamInterface $body): string
    {
        $text = '';

        if ($body->isSeekable()) {
            $body->rewind();
        }

        while (\strlen($text) <= self::MAX_BODY_BYTES && !$body->eof()) {
            $text .= $body->read(65_536);
        }

        if (\strlen($text) > self::MAX_BODY_BYTES) {
            throw new BodyTooLong('The request body has more than ' . self::MAX_BODY_BYTES . ' bytes.');
        }

        return $text;
    }

    /**
     * Creates a JSON-RPC error response.
     *
     * @param array<string, string> $headers
     */
    public function error(int $status, int $code, string $message, mixed $id, array $headers = []): ResponseInterface
    {
        $error = ['jsonrpc' => '2.0', 'id' => $id, 'error' => ['code' => $code, 'message' => $message]];
        $json = Value::encode($id === null ? \array_diff_key($error, ['id' => 1]) : $error);
        $body = $this->streams->createStream((string) $json);
        $response = $this->responses->createResponse($status)->withHeader('Content-Type', 'application/json');

        foreach ($headers as $name => $value) {
            $response = $response->withHeader($name, $value);
        }

        return $response->withBody($body);
    }

    /**
     * Returns the response of $do. Replaces it with HTTP 413 if the body is too long, and with 503 if the store fails
     * or refuses: the client then retries and keeps its session.
     *
     * @param \Closure(): ResponseInterface $do
     * @param SessionManager|null           $sessions reports refusals that the SDK turned into responses
     * @param list<array<array-key, mixed>> $messages the client's messages, whose id the error response repeats
     */
    public function orUnavailable(\Closure $do, ?SessionManager $sessions = null, array &$messages = []): ResponseInterface
    {
        try {
            $response = $do();
        } catch (BodyTooLong $e) {
            return $this->error(413, -32600, $e->getMessage(), null);
        } catch (\Throwable $e) {
            $refusal = Unavailable::cause($e) ?? throw $e;
            $response = null;
        }

        $refusal = $sessions?->takeRefusal() ?? $refusal ?? null;

        if ($refusal === null || $response !== null && self::isStream($response)) {
            return $response;
        }

        return $this->error(
            Unavailable::STATUS,
            Unavailable::CODE,
            Unavailable::message($refusal),
            \count($messages) === 1 && isset($messages[0]['method']) ? $messages[0]['id'] ?? null : null,
            Unavailable::HEADERS,
        );
    }

    private static function isStream(ResponseInterface $response): bool
    {
        return \str_starts_with($response->getHeaderLine('Content-Type'), 'text/event-stream');
    }
}
