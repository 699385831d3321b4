<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

use McpState\Owner;

/**
 * A request to the client that an exchange has made and the SDK is not done with.
 *
 * @internal
 */
final class Question
{
    /** @var array<string, mixed>|null the JSON-RPC error that answers it where the store does not */
    public ?array $error = null;

    /** The owner that has registered it in the store; null: none has. */
    public ?Owner $owner = null;

    public function __construct(
        public readonly int $id,
        /** `hrtime` at which it ends where the store cannot be asked. */
        public readonly int $deadline,
    ) {
    }

    /** Answers it with an error, unless it has one. The tool that asked hears of it. */
    public function refuse(string $why): void
    {
        $this->error ??= self::error($this->id, "The question to the client ended: $why");
    }

    /** @return array<string, mixed> a JSON-RPC error response */
    public static function error(int|string $id, string $message): array
    {
        return ['jsonrpc' => '2.0', 'id' => $id, 'error' => ['code' => -32603, 'message' => $message]];
    }
}
