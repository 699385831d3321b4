<?php

declare(strict_types=1);

namespace McpState\Bench\Peers;

/** The session as one document in APCu. */
class ApcuBlob extends Blob
{
    protected function read(string $id): string|false
    {
        return apcu_fetch("session:$id");
    }

    protected function write(string $id, string $document): void
    {
        if (!apcu_store("session:$id", $document, 3600)) {
            throw new \RuntimeException('APCu is full; increase apc.shm_size');
        }
    }
}
