<?php

declare(strict_types=1);

namespace McpState\Bench\Peers;

/** Runs each step under a lock of the session: flock on a separate file. */
trait Flock
{
    /** @var ?resource */
    private $lock = null;

    protected function guarded(\Closure $step): mixed
    {
        $directory = is_dir($this->place) ? $this->place : dirname($this->place);
        $this->lock ??= fopen("$directory/$this->id.lock", 'c')
            ?: throw new \RuntimeException('cannot open the lock file');
        flock($this->lock, LOCK_EX);
        try {
            return $step();
        } finally {
            flock($this->lock, LOCK_UN);
        }
    }
}
