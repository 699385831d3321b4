<?php

declare(strict_types=1);

namespace McpState\Bench\Peers;

/**
 * The session as one document in a file, with the system calls of the file store of mcp/sdk. A read gets the age and
 * the contents. A write creates a temporary file under a lock, renames it, and touches the result.
 *
 * There is one deviation: the name of the temporary file contains the process id. The SDK's name contains only the
 * session id, so two writers can meet in the file and readers find half a document, which would end the measurement.
 */
class FileBlob extends Blob
{
    protected function read(string $id): string|false
    {
        $path = "$this->place/$id";
        if (!is_file($path) || time() - (@filemtime($path) ?: 0) > 3600) {
            return false;
        }

        return @file_get_contents($path);
    }

    protected function write(string $id, string $document): void
    {
        $path = "$this->place/$id";
        $temporary = $path . '.' . getmypid() . '.tmp';
        if (@file_put_contents($temporary, $document, LOCK_EX) === false || !@rename($temporary, $path)) {
            throw new \RuntimeException("cannot write $path");
        }
        @touch($path, time());
    }
}
