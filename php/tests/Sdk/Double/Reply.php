<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk\Double;

/** What an exchange answers: a body, or a stream that is served when the body is read, after the server has returned. */
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
     * All messages of the reply, a stream's served to its end.
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
