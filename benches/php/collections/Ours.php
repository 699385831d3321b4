<?php

declare(strict_types=1);

namespace McpState\Bench\Collections;

use McpState\Bench\Collection;
use McpState\Bench\Content;
use McpState\Store;

/** mcp-state, which has an index in the order of expiry. */
final class Ours implements Collection
{
    private const BATCH = 100;

    private readonly Store $store;

    public function __construct(string $place)
    {
        $this->store = Store::open($place);
    }

    public function fill(int $sessions): void
    {
        $attributes = Content::attributes(1000);
        for ($number = 0; $number < $sessions; ++$number) {
            $this->store->createSession()->patch($attributes);
        }
    }

    public function expire(int $sessions): void
    {
        $attributes = Content::attributes(1000);
        for ($number = 0; $number < $sessions; ++$number) {
            $this->store->createSession(ttlMs: 1000)->patch($attributes);
        }
        usleep(1_050_000);
    }

    public function collect(): int
    {
        $sessions = 0;
        do {
            $collected = $this->store->collect(self::BATCH);
            $sessions += $collected->sessions;
        } while ($collected->more);

        return $sessions;
    }
}
