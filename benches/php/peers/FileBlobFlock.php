<?php

declare(strict_types=1);

namespace McpState\Bench\Peers;

/**
 * The session as one document in a file, with a lock per session.
 */
final class FileBlobFlock extends FileBlob
{
    use Flock;
}
