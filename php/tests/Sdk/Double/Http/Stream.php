<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk\Double\Http;

use Psr\Http\Message\StreamInterface;

/** A stream over a text, which can be read again only after a rewind. */
final class Stream implements StreamInterface
{
    private int $position = 0;

    public function __construct(private readonly string $text, private readonly bool $isSeekable = true)
    {
    }

    public function __toString(): string
    {
        return $this->getContents();
    }

    public function close(): void
    {
    }

    public function detach()
    {
        return null;
    }

    public function getSize(): ?int
    {
        return null;
    }

    public function tell(): int
    {
        return $this->position;
    }

    public function eof(): bool
    {
        return $this->position >= \strlen($this->text);
    }

    public function isSeekable(): bool
    {
        return $this->isSeekable;
    }

    public function seek(int $offset, int $whence = \SEEK_SET): void
    {
        $this->position = $offset;
    }

    public function rewind(): void
    {
        $this->position = 0;
    }

    public function isWritable(): bool
    {
        return false;
    }

    public function write(string $string): int
    {
        return 0;
    }

    public function isReadable(): bool
    {
        return true;
    }

    public function read(int $length): string
    {
        $part = \substr($this->text, $this->position, $length);
        $this->position += \strlen($part);

        return $part;
    }

    public function getContents(): string
    {
        return $this->read(\PHP_INT_MAX);
    }

    public function getMetadata(?string $key = null)
    {
        return null;
    }
}
