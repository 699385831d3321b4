<?php

declare(strict_types=1);

namespace McpState\Bench\Pairs;

use McpState\Bench\Pair;
use McpState\Bench\Peers\FileBlob;

/**
 * A document in a file, which the waiting process reads repeatedly with pauses, like PHP SDKs. The first pause has a
 * random length, because in a server an answer arrives at a random time between two reads.
 */
abstract class Poll implements Pair
{
    protected const MICROSECONDS = 0;

    private readonly FileBlob $blob;
    private int $id;

    public static function prepare(string $place): void
    {
        (new FileBlob($place))->populate(1, 1, 10_000);
    }

    public function __construct(string $place)
    {
        $this->blob = new FileBlob($place);
        $this->blob->enter(0);
    }

    public function ask(): string
    {
        $this->id = $this->blob->send('{"jsonrpc":"2.0","method":"elicitation/create"}');
        $this->blob->take();

        return (string) $this->id;
    }

    public function wait(): void
    {
        $end = hrtime(true) + 10_000_000_000;
        usleep(random_int(0, static::MICROSECONDS));
        while (!$this->blob->isAnswered($this->id)) {
            if (hrtime(true) > $end) {
                throw new \RuntimeException('there was no answer');
            }
            usleep(static::MICROSECONDS);
        }
    }

    public function finish(): void
    {
        $this->blob->claim($this->id);
    }

    public function answer(string $question): void
    {
        $this->blob->deliver((int) $question, '{"action":"accept"}');
    }
}
