<?php

declare(strict_types=1);

namespace McpState\Bench\Pairs;

use McpState\Bench\Pair;

/** A list in Redis: one process blocks on the list, and the other pushes to it. */
final class RedisBlpop implements Pair
{
    private readonly \Redis $redis;
    private int $number = 0;

    public static function prepare(string $place): void
    {
    }

    public function __construct(string $place)
    {
        $this->redis = new \Redis();
        $this->redis->connect($place);
    }

    public function ask(): string
    {
        return 'answer:' . ++$this->number;
    }

    public function wait(): void
    {
        if (!$this->redis->blPop(["answer:$this->number"], 10)) {
            throw new \RuntimeException('there was no answer');
        }
    }

    public function finish(): void
    {
    }

    public function answer(string $question): void
    {
        $this->redis->rPush($question, '{"action":"accept"}');
    }
}
