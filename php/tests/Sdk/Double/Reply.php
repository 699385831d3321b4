<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk\Double;

/** The reply of an exchange: a body, or a stream that is served while it is read, after the server has returned. */
final class Reply
{
    public ?string $sessionId = null;

    /** @param (\Closure(\Closure(string): void): void)|null $stream */
    public function __construct(
        public readonly int $status,
        public readonly ?string $body = null,
        public readonly ?\Closure $stream = null,
    ) {
    }

    /**
     * Returns all messages of the reply, and serves a stream to its end.
     *
     * @return list<array<string, mixed>>
     */
    public function messages(): array
    {
        $messages = [];

        if ($this->stream !== null) {
            ($this->stream)(static function (string $message) use (&$messages): void {
                $messages[] = \json_decode($message, true);
            });
        } elseif ($this->body !== null) {
            $body = \json_decode($this->body, true);
            $messages = \array_is_list($body) ? $body : [$body];
        }

        return $messages;
    }
}
