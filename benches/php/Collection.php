<?php

declare(strict_types=1);

namespace McpState\Bench;

/** A store that collects its expired sessions. */
interface Collection
{
    public function __construct(string $place);

    /** Creates sessions that do not expire. */
    public function fill(int $sessions): void;

    /** Creates sessions that have expired when the call returns. */
    public function expire(int $sessions): void;

    /** Collects the expired sessions and returns their number. */
    public function collect(): int;
}
