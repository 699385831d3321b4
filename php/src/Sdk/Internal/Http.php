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
 * What the middleware shares: reading JSON-RPC messages and answering with an error.
 *
 * @internal
 */
final class Http
{
    /** A longer body is refused, since nobody has looked at what it asks. The SDK's own limit is the same by default. */
    private const MAX_BODY_BYTES = 4 * 1024 * 1024;

    private readonly ResponseFactoryInterface $responses;

    private readonly StreamFactoryInterface $streams;

    /** @throws InvalidArgument when a factory is neither given nor found */
    public function __construct(?ResponseFactoryInterface $responses, ?StreamFactoryInterface $streams)
    {
        if (($responses === null || $streams === null) && !\class_exists(Psr17FactoryDiscovery::class)) {
            throw new InvalidArgument(
                'no PSR-17 factories: give the middleware a response and a stream factory, or install php-http/discovery'
            );
        }

        $this->responses = $responses ?? Psr17FactoryDiscovery::findResponseFactory();
        $this->streams = $streams ?? Psr17FactoryDiscovery::findStreamFactory();
    }

    /**
     * The request's JSON-RPC messages, none when it has none, and the request with its body to be read again.
     *
     * @return array{list<array<array-key, mixed>>, ServerRequestInterface}
     *
     * @throws BodyTooLong which {@see orUnavailable()} answers
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
     * What $do makes of the messages and the request, {@see orUnavailable()}. The manager hears what it serves.
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

    /** @param array<string, string> $headers */
    public function error(int $status, int $code, string $message, mixed $id, array $headers = []): ResponseInterface
    {
        $error = ['jsonrpc' => '2.0', 'id' => $id, 'error' => ['code' => $code, 'message' => $message]];
        $body = $this->streams->createStream((string) Value::encode($id === null ? \array_diff_key($error, ['id' => 1]) : $error));
        $response = $this->responses->createResponse($status)->withHeader('Content-Type', 'application/json');

        foreach ($headers as $name => $value) {
            $response = $response->withHeader($name, $value);
        }

        return $response->withBody($body);
    }

    /**
     * What $do gives; 413 when the body is too long, and 503 when the store cannot do its part: the client tries again, and
     * keeps its session.
     *
     * @param \Closure(): ResponseInterface   $do
     * @param SessionManager|null             $sessions which knows of refusals that the SDK has made a response of
     * @param list<array<array-key, mixed>>   $messages the client's, for the id that the error echoes
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
