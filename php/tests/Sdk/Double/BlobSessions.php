<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk\Double;

use Mcp\Server\Session\SessionInterface;
use Mcp\Server\Session\SessionManagerInterface;
use Symfony\Component\Uid\Uuid;

/** One JSON file per session, read and written as a whole. The scenarios must detect its lost updates. */
final class BlobSessions implements SessionManagerInterface
{
    public function __construct(private readonly string $directory)
    {
        if (!\is_dir($directory)) {
            @\mkdir($directory, 0700, true);
        }
    }

    public function create(): SessionInterface
    {
        return $this->createWithId(Uuid::v4());
    }

    public function createWithId(Uuid $id): SessionInterface
    {
        return new BlobSession($id, "$this->directory/$id");
    }

    public function exists(Uuid $id): bool
    {
        return \is_file("$this->directory/$id");
    }

    public function destroy(Uuid $id): bool
    {
        return @\unlink("$this->directory/$id");
    }

    public function gc(): void
    {
    }
}
