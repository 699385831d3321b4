<?php

declare(strict_types=1);

namespace McpState\Tests;

use McpState\Example\State\Answer;
use McpState\Example\State\SessionState;

/** A session whose every operation is delayed, before and after. */
final class DelayedSession implements SessionState
{
    public function __construct(private readonly SessionState $inner, private readonly Delays $delays)
    {
    }

    public function id(): string
    {
        return $this->inner->id();
    }

    public function get(string $key): mixed
    {
        return $this->delays->around(fn () => $this->inner->get($key));
    }

    public function all(): array
    {
        return $this->delays->around(fn () => $this->inner->all());
    }

    public function set(array $values): void
    {
        $this->delays->around(fn () => $this->inner->set($values));
    }

    public function update(string $key, \Closure $change): void
    {
        $delayed = fn (mixed $value) => $this->delays->around(static fn () => $change($value));
        $this->delays->around(fn () => $this->inner->update($key, $delayed));
    }

    public function begin(int|string $id, bool $reject): bool
    {
        return $this->delays->around(fn () => $this->inner->begin($id, $reject));
    }

    public function finish(int|string $id): bool
    {
        return $this->delays->around(fn () => $this->inner->finish($id));
    }

    public function cancel(int|string $id): void
    {
        $this->delays->around(fn () => $this->inner->cancel($id));
    }

    public function reply(string $message): void
    {
        $this->delays->around(fn () => $this->inner->reply($message));
    }

    public function notify(string $message): void
    {
        $this->delays->around(fn () => $this->inner->notify($message));
    }

    public function broadcast(string $message): void
    {
        $this->delays->around(fn () => $this->inner->broadcast($message));
    }

    public function take(): array
    {
        return $this->delays->around(fn () => $this->inner->take());
    }

    public function ask(array $message, int $timeoutMs): int
    {
        return $this->delays->around(fn () => $this->inner->ask($message, $timeoutMs));
    }

    public function claim(?int $id): Answer
    {
        return $this->delays->around(fn () => $this->inner->claim($id));
    }

    public function wait(int $atMostMs): void
    {
        $this->delays->around(fn () => $this->inner->wait($atMostMs));
    }

    public function deliver(mixed $id, string $response): ?string
    {
        return $this->delays->around(fn () => $this->inner->deliver($id, $response));
    }

    public function end(): void
    {
        $this->delays->around(fn () => $this->inner->end());
    }
}
