<?php

declare(strict_types=1);

namespace Mcp\Server\Transport\Http;

/** Double of logiscape/mcp-sdk-php's session: a record with an id, times, a state and metadata. */
class HttpSession
{
    /** @var array<string, mixed> */
    private array $record;

    public function __construct(?string $id = null)
    {
        $this->record = [
            'id' => $id ?? \bin2hex(\random_bytes(32)),
            'created_at' => \time(),
            'last_activity' => \time(),
            'state' => 'new',
            'metadata' => [],
        ];
    }

    /** @param array<string, mixed> $data */
    public static function fromArray(array $data): self
    {
        $session = new self();
        $session->record = $data + $session->record;

        return $session;
    }

    /** @return array<string, mixed> */
    public function toArray(): array
    {
        return $this->record;
    }

    public function getId(): string
    {
        return $this->record['id'];
    }

    public function getMetadata(string $key, mixed $default = null): mixed
    {
        return $this->record['metadata'][$key] ?? $default;
    }

    public function setMetadata(string $key, mixed $value): void
    {
        $this->record['metadata'][$key] = $value;
    }

    public function getLastActivity(): int
    {
        return $this->record['last_activity'];
    }

    public function updateActivity(?int $time = null): void
    {
        $this->record['last_activity'] = $time ?? \time();
    }
}
