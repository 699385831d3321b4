<?php

declare(strict_types=1);

namespace McpState\Example;

/**
 * The JSON-RPC messages of one POST. Protocol 2025-03-26 allows several messages in an array; later protocols allow
 * one.
 */
final class Post
{
    /**
     * @param list<array<string, mixed>> $requests
     * @param list<array<string, mixed>> $notifications
     * @param list<array<string, mixed>> $responses
     */
    private function __construct(
        public readonly array $requests,
        public readonly array $notifications,
        public readonly array $responses,
        public readonly bool $isBatch,
    ) {
    }

    /** @throws RpcError with HTTP status 400 if the body is malformed */
    public static function parse(string $body): self
    {
        try {
            $decoded = json_decode($body, true, 512, JSON_THROW_ON_ERROR);
        } catch (\JsonException $e) {
            throw new RpcError(RpcError::PARSE_ERROR, 'The body is not JSON: ' . $e->getMessage(), 400);
        }
        $isBatch = is_array($decoded) && array_is_list($decoded);
        $sorted = ['request' => [], 'notification' => [], 'response' => []];
        foreach ($isBatch ? $decoded : [$decoded] as $message) {
            $sorted[self::kind($message)][] = $message;
        }
        $post = new self($sorted['request'], $sorted['notification'], $sorted['response'], $isBatch);
        if ($decoded === [] || ($isBatch && $post->initializes())) {
            throw new RpcError(RpcError::INVALID_REQUEST, 'A batch is not empty, and "initialize" is not part of one.', 400);
        }

        return $post;
    }

    public function initializes(): bool
    {
        return in_array('initialize', array_column($this->requests, 'method'), true);
    }

    private static function kind(mixed $message): string
    {
        $id = is_array($message) ? $message['id'] ?? null : null;
        $hasId = is_int($id) || is_string($id);

        return match (true) {
            !is_array($message) || !is_array($message['params'] ?? []) => self::refuse(),
            is_string($message['method'] ?? null) && $hasId => 'request',
            is_string($message['method'] ?? null) && !array_key_exists('id', $message) => 'notification',
            // A client that cannot read the id of a message reports an error with the id null.
            isset($message['error']) && array_key_exists('id', $message) => 'response',
            $hasId && array_key_exists('result', $message) => 'response',
            default => self::refuse(),
        };
    }

    private static function refuse(): never
    {
        throw new RpcError(RpcError::INVALID_REQUEST, 'This is no JSON-RPC request, notification or response.', 400);
    }
}
