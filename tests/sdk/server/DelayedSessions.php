<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk;

use Mcp\Server\Session\SessionInterface;
use Mcp\Server\Session\SessionManagerInterface;
use McpState\Tests\Delays;
use Symfony\Component\Uid\Uuid;

/** Random delays around everything that the SDK asks of its sessions. */
final class DelayedSessions implements SessionManagerInterface
{
    public function __construct(private readonly SessionManagerInterface $sessions, private readonly Delays $delays)
    {
    }

    public function create(): SessionInterface
    {
        return new DelayedSession($this->delays->around($this->sessions->create(...)), $this->delays);
    }

    public function createWithId(Uuid $id): SessionInterface
    {
        // Nothing may come between exists() and this.
        return new DelayedSession($this->sessions->createWithId($id), $this->delays);
    }

    public function exists(Uuid $id): bool
    {
        return $this->delays->around(fn (): bool => $this->sessions->exists($id));
    }

    public function destroy(Uuid $id): bool
    {
        return $this->delays->around(fn (): bool => $this->sessions->destroy($id));
    }

    public function gc(): void
    {
        $this->sessions->gc();
    }
}
