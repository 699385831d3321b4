<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

/**
 * The values that belong to the client's request being served: its metadata, and objects. They stay in this process.
 *
 * @internal
 */
final class RequestMemory
{
    /** @var array<array-key, mixed> */
    private array $values = [];

    public function get(string $key): mixed
    {
        return Path::get($this->values, $key);
    }

    public function set(string $key, mixed $value): void
    {
        Path::set($this->values, $key, $value);
    }

    public function forget(string $key): void
    {
        Path::forget($this->values, $key);
    }
}
