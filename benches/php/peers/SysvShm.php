<?php

declare(strict_types=1);

namespace McpState\Bench\Peers;

use McpState\Bench\Content;
use McpState\Bench\LeavesBehind;

/**
 * The session as one document in System V shared memory: one segment per session, guarded by a semaphore. This peer
 * creates only the sessions that are measured.
 */
final class SysvShm extends Blob implements LeavesBehind
{
    private const VARIABLE = 1;
    private const BYTES = 4 << 20;

    private ?\SysvSharedMemory $segment = null;
    private ?\SysvSemaphore $semaphore = null;

    public function populate(int $sessions, int $measured, int $content): void
    {
        parent::populate($measured, $measured, $content);
    }

    public function remove(int $measured): void
    {
        for ($number = 0; $number < $measured; ++$number) {
            $key = $this->key(Content::id($number));
            shm_remove(shm_attach($key, self::BYTES));
            sem_remove(sem_get($key));
        }
    }

    protected function read(string $id): string|false
    {
        $this->segment ??= shm_attach($this->key($id), self::BYTES);

        return shm_has_var($this->segment, self::VARIABLE) ? shm_get_var($this->segment, self::VARIABLE) : false;
    }

    protected function write(string $id, string $document): void
    {
        // populate() writes to many segments, and the other methods to one.
        $segment = $this->segment ?? shm_attach($this->key($id), self::BYTES);
        if (!shm_put_var($segment, self::VARIABLE, $document)) {
            throw new \RuntimeException('the segment is full');
        }
    }

    protected function guarded(\Closure $step): mixed
    {
        $this->semaphore ??= sem_get($this->key($this->id), auto_release: true);
        sem_acquire($this->semaphore);
        try {
            return $step();
        } finally {
            sem_release($this->semaphore);
        }
    }

    private function key(string $id): int
    {
        touch("$this->place/$id");

        return ftok("$this->place/$id", 'b');
    }
}
