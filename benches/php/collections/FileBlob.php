<?php

declare(strict_types=1);

namespace McpState\Bench\Collections;

use McpState\Bench\Collection;
use McpState\Bench\Content;

/**
 * One file per session. Collecting reads the whole directory and checks the age of each file, like the file store of
 * mcp/sdk.
 */
final class FileBlob implements Collection
{
    private const TTL = 3600;

    public function __construct(private readonly string $place)
    {
    }

    public function fill(int $sessions): void
    {
        $this->make($sessions, time());
    }

    public function expire(int $sessions): void
    {
        $this->make($sessions, time() - self::TTL - 1);
    }

    public function collect(): int
    {
        $collected = 0;
        $now = time();
        $directory = opendir($this->place);
        while (($entry = readdir($directory)) !== false) {
            $path = "$this->place/$entry";
            if ($entry !== '.' && $entry !== '..' && is_file($path) && $now - filemtime($path) > self::TTL) {
                unlink($path);
                ++$collected;
            }
        }
        closedir($directory);

        return $collected;
    }

    private function make(int $sessions, int $time): void
    {
        $document = json_encode(Content::attributes(1000), JSON_THROW_ON_ERROR);
        for ($number = 0; $number < $sessions; ++$number) {
            $path = "$this->place/" . bin2hex(random_bytes(16));
            file_put_contents($path, $document);
            touch($path, $time);
        }
    }
}
