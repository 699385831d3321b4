<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

use McpState\Owner;

/**
 * A request of the server to the client (a question) that the SDK has not finished yet.
 *
 * @internal
 */
final class Question
{
    private const INTERNAL_ERROR = -32603;

    /**
     * @var array<string, mixed>|null the JSON-RPC error that answers the question in place of a response from the store
     */
    public ?array $error = null;

    /** The owner that registered the question in the store; null if none did. */
    public ?Owner $owner = null;

    /** Whether the SDK has received the response or the timeout. */
    public bool $isReported = false;

    /** Whether the store has the question's method. */
    public bool $hasMethod = false;

    public function __construct(
        public readonly int $id,
        /** The `hrtime`, in nanoseconds, at which the question times out while the store is unavailable. */
        public int $deadline,
        /** The timeout in milliseconds; null: the store's `request_timeout_ms`. */
        public readonly ?int $timeoutMs,
        /** The client's request whose handler asked the question; null if unknown. */
        public readonly ?Call $call,
    ) {
    }

    /** Answers the question with an error, unless it has one already. The tool that asked receives the error. */
    public function refuse(string $why, int $code = self::INTERNAL_ERROR): void
    {
        $this->error ??= self::error($this->id, "The question to the client ended: $why", $code);
    }

    /**
     * Tells whether the SDK has finished the question when $call asks a new one. A fiber waits for one response at a
     * time.
     */
    public function isOver(?Call $call): bool
    {
        return $this->call === null ? $this->isReported : $this->call === $call || $this->call->hasEnded();
    }

    /** @return array<string, mixed> a JSON-RPC error response */
    public static function error(int|string $id, string $message, int $code = self::INTERNAL_ERROR): array
    {
        return ['jsonrpc' => '2.0', 'id' => $id, 'error' => ['code' => $code, 'message' => $message]];
    }
}
