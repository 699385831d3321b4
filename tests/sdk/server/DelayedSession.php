<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk;

use Mcp\Server\Session\SessionInterface;
use McpState\Tests\Delays;
use Symfony\Component\Uid\Uuid;

/** Random delays around everything that the SDK asks of a session. */
final class DelayedSession implements SessionInterface
{
    public function __construct(private readonly SessionInterface $session, private readonly Delays $delays)
    {
    }

    public function getId(): Uuid
    {
        return $this->session->getId();
    }

    public function save(): bool
    {
        return $this->delays->around($this->session->save(...));
    }

    public function get(string $key, mixed $default = null): mixed
    {
        return $this->delays->around(fn (): mixed => $this->session->get($key, $default));
    }

    public function set(string $key, mixed $value, bool $overwrite = true): void
    {
        $this->delays->around(fn () => $this->session->set($key, $value, $overwrite));
    }

    public function has(string $key): bool
    {
        return $this->delays->around(fn (): bool => $this->session->has($key));
    }

    public function forget(string $key): void
    {
        $this->delays->around(fn () => $this->session->forget($key));
    }

    public function clear(): void
    {
        $this->delays->around($this->session->clear(...));
    }

    public function pull(string $key, mixed $default = null): mixed
    {
        return $this->delays->around(fn (): mixed => $this->session->pull($key, $default));
    }

    public function all(): array
    {
        return $this->delays->around($this->session->all(...));
    }

    public function hydrate(array $attributes): void
    {
        $this->delays->around(fn () => $this->session->hydrate($attributes));
    }

    public function jsonSerialize(): array
    {
        return $this->all();
    }
}
