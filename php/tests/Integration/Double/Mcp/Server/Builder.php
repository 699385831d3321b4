<?php

declare(strict_types=1);

namespace Mcp\Server;

use Mcp\Server;
use Mcp\Server\Session\SessionManagerInterface;
use Mcp\Server\Subscription\NotificationBusInterface;

/** Double of the SDK's builder, with the methods that the integrations call and the SDK's parameters. */
final class Builder
{
    /** @var list<array{string, array<int, mixed>}> */
    public array $calls = [];

    public function setServerInfo(string $name): self
    {
        return $this->called(__FUNCTION__, \func_get_args());
    }

    public function setSession(
        ?object $sessionStore = null,
        ?SessionManagerInterface $sessionManager = null,
        int $gcProbability = 1,
        int $gcDivisor = 100,
    ): self {
        return $this->called(__FUNCTION__, \func_get_args());
    }

    public function setSessionLock(object $lock): self
    {
        return $this->called(__FUNCTION__, \func_get_args());
    }

    public function setNotificationBus(NotificationBusInterface $bus): self
    {
        return $this->called(__FUNCTION__, \func_get_args());
    }

    public function build(): Server
    {
        return new Server(new Protocol(['tools/call'], $this->sessions()));
    }

    /** Only the double has this accessor. */
    public function sessions(): ?SessionManagerInterface
    {
        return $this->argumentsOf('setSession')[1] ?? null;
    }

    /** @return array<int, mixed>|null */
    public function argumentsOf(string $method): ?array
    {
        return \array_column($this->calls, 1, 0)[$method] ?? null;
    }

    /** @param array<int, mixed> $arguments */
    private function called(string $method, array $arguments): self
    {
        $this->calls[] = [$method, $arguments];

        return $this;
    }
}
