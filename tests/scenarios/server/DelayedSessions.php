<?php

declare(strict_types=1);

namespace McpState\Tests;

use McpState\Example\State\Sessions;
use McpState\Example\State\SessionState;

/** Sessions whose every operation is delayed. */
final class DelayedSessions implements Sessions
{
    public function __construct(private readonly Sessions $inner, private readonly Delays $delays)
    {
    }

    public function create(): SessionState
    {
        return new DelayedSession($this->delays->around(fn () => $this->inner->create()), $this->delays);
    }

    public function open(string $id, bool $streams): ?SessionState
    {
        $session = $this->delays->around(fn () => $this->inner->open($id, $streams));

        return $session === null ? null : new DelayedSession($session, $this->delays);
    }

    public function destroy(string $id): bool
    {
        return $this->delays->around(fn () => $this->inner->destroy($id));
    }
}
