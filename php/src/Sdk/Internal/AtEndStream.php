<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

use Psr\Http\Message\StreamInterface;

/**
 * A response body that reports the end of the response: when the body has been read to its end, closed or destroyed.
 * The SDK serves an event stream while its body is read.
 *
 * @internal
 */
final class AtEndStream implements StreamInterface
{
    /** @param (\Closure(): mixed)|null $atEnd runs once, at the end of the response */
    public function __construct(private readonly StreamInterface $body, private ?\Closure $atEnd)
    {
    }

    public function __destruct()
    {
        $this->end();
    }

    public function __toString(): string
    {
        try {
            return (string) $this->body;
        } finally {
            $this->end();
        }
    }

    public function getContents(): string
    {
        try {
            return $this->body->getContents();
        } catch (ClientGone) {
            return '';
        } finally {
            $this->end();
        }
    }

    public function read($length): string
    {
        try {
            return $this->body->read($length);
        } catch (ClientGone) {
            return '';
        } finally {
            if ($this->body->eof()) {
                $this->end();
            }
        }
    }

    public function close(): void
    {
        $this->body->close();
        $this->end();
    }

    public function detach()
    {
        $this->end();

        return $this->body->detach();
    }

    public function getSize(): ?int
    {
        return $this->body->getSize();
    }

    public function tell(): int
    {
        return $this->body->tell();
    }

    public function eof(): bool
    {
        return $this->body->eof();
    }

    public function isSeekable(): bool
    {
        return $this->body->isSeekable();
    }

    public function seek($offset, $whence = \SEEK_SET): void
    {
        $this->body->seek($offset, $whence);
    }

    public function rewind(): void
    {
        $this->body->rewind();
    }

    public function isWritable(): bool
    {
        return false;
    }

    public function write($string): int
    {
        throw new \RuntimeException('the response body is read-only');
    }

    public function isReadable(): bool
    {
        return $this->body->isReadable();
    }

    public function getMetadata($key = null)
    {
        return $this->body->getMetadata($key);
    }

    private function end(): void
    {
        [$atEnd, $this->atEnd] = [$this->atEnd, null];

        if ($atEnd !== null) {
            $atEnd();
        }
    }
}
