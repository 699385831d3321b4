<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk\Double;

use Mcp\Server\Session\SessionInterface;
use McpState\Sdk\Internal\Path;
use Symfony\Component\Uid\Uuid;

/** A session that is read on first use, changed in memory, and written back as a whole. */
final class BlobSession implements SessionInterface
{
    private ?array $data = null;

    public function __construct(private readonly Uuid $id, private readonly string $file)
    {
    }

    public function getId(): Uuid
    {
        return $this->id;
    }

    public function save(): bool
    {
        $new = $this->file . '.' . \getmypid();

        return \file_put_contents($new, \json_encode($this->all())) !== false && \rename($new, $this->file);
    }

    public function get(string $key, mixed $default = null): mixed
    {
        return Path::get($this->all(), $key) ?? $default;
    }

    public function set(string $key, mixed $value, bool $overwrite = true): void
    {
        $this->all();

        if ($overwrite || !$this->has($key)) {
            Path::set($this->data, $key, $value);
        }
    }

    public function has(string $key): bool
    {
        return $this->get($key) !== null;
    }

    public function forget(string $key): void
    {
        $this->all();
        Path::forget($this->data, $key);
    }

    public function clear(): void
    {
        $this->data = [];
    }

    public function pull(string $key, mixed $default = null): mixed
    {
        $value = $this->get($key, $default);
        $this->forget($key);

        return $value;
    }

    public function all(): array
    {
        return $this->data ??= \is_file($this->file) ? (array) \json_decode((string) \file_get_contents($this->file), true) : [];
    }

    public function hydrate(array $attributes): void
    {
        $this->data = $attributes;
    }

    public function jsonSerialize(): array
    {
        return $this->all();
    }
}
