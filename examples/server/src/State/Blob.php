<?php

declare(strict_types=1);

namespace McpState\Example\State;

/**
 * A session as one JSON document in a file. The first access reads the whole document, changes happen in memory, and
 * {@see save()} writes the whole document. It overwrites what another process saved in between.
 *
 * {@see save()} replaces the file in the same way as the file store of mcp/sdk: it writes one temporary file per
 * session under a lock (so that two writers can meet in that file) and renames it.
 */
final class Blob
{
    /** @var ?array<string, mixed> */
    private ?array $data = null;

    public function __construct(private readonly string $file)
    {
    }

    public function get(string $key, mixed $default = null): mixed
    {
        $value = $this->data();
        foreach (explode('.', $key) as $segment) {
            if (!is_array($value) || !array_key_exists($segment, $value)) {
                return $default;
            }
            $value = $value[$segment];
        }

        return $value;
    }

    public function set(string $key, mixed $value): void
    {
        $data = $this->data();
        $place = &$data;
        foreach (explode('.', $key) as $segment) {
            if (!is_array($place)) {
                $place = [];
            }
            $place = &$place[$segment];
        }
        $place = $value;
        unset($place);
        $this->data = $data;
    }

    /** @return array<string, mixed> */
    public function data(): array
    {
        if ($this->data === null) {
            $text = is_file($this->file) ? @file_get_contents($this->file) : false;
            $data = $text === false ? [] : json_decode($text, true, flags: JSON_THROW_ON_ERROR);
            $this->data = is_array($data) ? $data : [];
        }

        return $this->data;
    }

    public function save(): void
    {
        $temporary = $this->file . '.tmp';
        $text = json_encode($this->data(), JSON_THROW_ON_ERROR);
        if (@file_put_contents($temporary, $text, LOCK_EX) === false) {
            return;
        }
        if (!@rename($temporary, $this->file)) {
            @copy($temporary, $this->file);
            @unlink($temporary);
        }
        @touch($this->file);
    }
}
