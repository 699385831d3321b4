<?php

declare(strict_types=1);

namespace McpState\Bench\Peers;

/**
 * Each step under a lock of the session: flock on a file of its own.
 */
trait Flock
{
    /** @var ?resource */
    private $lock = null;

    protected function guarded(\Closure $step): mixed
    {
        $directory = is_dir($this->place) ? $this->place : dirname($this->place);
        $this->lock ??= fopen("$directory/$this->id.lock", 'c') ?: throw new \RuntimeException('the lock cannot be opened');
        flock($this->lock, LOCK_EX);
        try {
            return $step();
        } finally {
            flock($this->lock, LOCK_UN);
        }
    }
}
