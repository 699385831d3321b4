<?php

declare(strict_types=1);

namespace McpState\Example\State;

/** Sessions as JSON documents, with one file per session in a directory. */
final class BlobSessions implements Sessions
{
    public function __construct(
        private readonly string $directory,
        private readonly int $ttlMs,
        private readonly bool $locked,
    ) {
        if (!is_dir($directory) && !@mkdir($directory, 0700, true) && !is_dir($directory)) {
            throw new \RuntimeException("The directory of the blobs cannot be made: $directory");
        }
    }

    public function create(): SessionState
    {
        $id = bin2hex(random_bytes(16));

        return $this->state($id);
    }

    public function open(string $id, bool $streams): ?SessionState
    {
        if (!$this->isId($id)) {
            return null;
        }
        $lock = $this->locked ? $this->lock($id) : null;
        $file = $this->file($id);
        $modified = is_file($file) ? (int) @filemtime($file) : 0;
        if (time() - $modified > intdiv($this->ttlMs, 1000)) {
            return null;
        }

        return $this->state($id, $lock);
    }

    public function destroy(string $id): bool
    {
        return $this->isId($id) && is_file($this->file($id)) && @unlink($this->file($id));
    }

    /** @param ?resource $lock */
    private function state(string $id, $lock = null): SessionState
    {
        return $this->locked
            ? new LockedBlobSession($id, $this->file($id), $lock ?? $this->lock($id))
            : new BlobSession($id, $this->file($id));
    }

    /** @return resource */
    private function lock(string $id)
    {
        $lock = fopen($this->file($id) . '.lock', 'c');
        if ($lock === false || !flock($lock, LOCK_EX)) {
            throw new \RuntimeException("The session $id cannot be locked.");
        }

        return $lock;
    }

    private function file(string $id): string
    {
        return $this->directory . '/' . $id;
    }

    private function isId(string $id): bool
    {
        return preg_match('/\A[0-9a-f]{32}\z/', $id) === 1;
    }
}
