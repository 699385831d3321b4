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
    private const INTERNAL_ERROR = -32603;

    /** @var array<string, mixed>|null the JSON-RPC error that answers it where the store does not */
    public ?array $error = null;

    /** The owner that has registered it in the store; null: none has. */
    public ?Owner $owner = null;

    /** Whether the SDK has been shown how it ended. */
    public bool $isShown = false;

    /** Whether the store has been told what it is. */
    public bool $isNamed = false;

    public function __construct(
        public readonly int $id,
        /** `hrtime` at which it ends where the store cannot be asked. */
        public int $deadline,
        /** Milliseconds that it waits; null: the store's `request_timeout_ms`. */
        public readonly ?int $timeoutMs,
        /** The client's request in whose course it was asked, where it is known. */
        public readonly ?Call $call,
    ) {
    }

    /** Answers it with an error, unless it has one. The tool that asked hears of it. */
    public function refuse(string $why, int $code = self::INTERNAL_ERROR): void
    {
        $this->error ??= self::error($this->id, "The question to the client ended: $why", $code);
    }

    /** Whether the SDK is done with it, now that $call asks anew: a fiber waits for one answer at a time. */
    public function isOver(?Call $call): bool
    {
        return $this->call === null ? $this->isShown : $this->call === $call || $this->call->hasEnded();
    }

    /** @return array<string, mixed> a JSON-RPC error response */
    public static function error(int|string $id, string $message, int $code = self::INTERNAL_ERROR): array
    {
        return ['jsonrpc' => '2.0', 'id' => $id, 'error' => ['code' => $code, 'message' => $message]];
    }
}
