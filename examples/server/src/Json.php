<?php

declare(strict_types=1);

namespace McpState\Example;

/** Encodes JSON-RPC messages. */
final class Json
{
    public static function encode(mixed $value): string
    {
        return json_encode(
            $value,
            JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_SUBSTITUTE,
        );
    }

    /** @param array<string, mixed>|object $result */
    public static function result(int|string $id, array|object $result): string
    {
        return self::encode(['jsonrpc' => '2.0', 'id' => $id, 'result' => $result]);
    }

    public static function error(int|string|null $id, int $code, string $message): string
    {
        return self::encode(['jsonrpc' => '2.0', 'id' => $id, 'error' => ['code' => $code, 'message' => $message]]);
    }

    /** @param array<string, mixed> $params */
    public static function notification(string $method, array $params): string
    {
        return self::encode(['jsonrpc' => '2.0', 'method' => $method, 'params' => $params]);
    }
}
