<?php

declare(strict_types=1);

namespace McpState\Tests;

/**
 * Random delays: the same seed and the same request give the same delays.
 *
 * Half of them are nothing, so that operations also follow each other at once; the others are spread evenly.
 */
final class Delays
{
    private function __construct(private int $state, private readonly int $maxUs)
    {
    }

    /** As MCP_STATE_DELAYS=SEED:MAX_US says; null when it is not set. */
    public static function fromEnvironment(string $request): ?self
    {
        $setting = getenv('MCP_STATE_DELAYS');
        if ($setting === false || $setting === '') {
            return null;
        }
        if (sscanf($setting, '%d:%d', $seed, $maxUs) !== 2 || $maxUs < 1) {
            throw new \DomainException("MCP_STATE_DELAYS is SEED:MAX_US, not \"$setting\".");
        }

        return new self(crc32("$seed $request"), $maxUs);
    }

    /**
     * @template T
     * @param \Closure(): T $operation
     * @return T
     */
    public function around(\Closure $operation): mixed
    {
        $this->delay();
        try {
            return $operation();
        } finally {
            $this->delay();
        }
    }

    private function delay(): void
    {
        if ($this->next() % 2 === 0) {
            usleep($this->next() % $this->maxUs);
        }
    }

    /** A linear congruential generator; the low bits of its state are poor, so the high ones are used. */
    private function next(): int
    {
        $this->state = ($this->state * 1103515245 + 12345) % (1 << 31);

        return $this->state >> 8;
    }
}
