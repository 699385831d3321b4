<?php

declare(strict_types=1);

namespace McpState\Bench\Peers;

/**
 * The document as a file, read and replaced with the calls that the file store of mcp/sdk makes: age, contents; a
 * temporary file under a lock, a rename, a touch.
 *
 * One deviation: the temporary file has a name of the process's own. The SDK's has the session's, so that two writers
 * meet in it and readers find half a document, which would end the measurement.
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
            throw new \RuntimeException("$path cannot be written");
        }
        @touch($path, time());
    }
}
