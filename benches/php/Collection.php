<?php

declare(strict_types=1);

namespace McpState\Bench;

/**
 * A store that collects sessions which have expired.
 */
interface Collection
{
    public function __construct(string $place);

    /** Makes sessions that stay. */
    public function fill(int $sessions): void;

    /** Makes sessions that have expired when it returns. */
    public function expire(int $sessions): void;

    /** Collects what has expired. How many sessions. */
    public function collect(): int;
}
