<?php

declare(strict_types=1);

namespace McpState\Bench\Peers;

/**
 * The same under a lock.
 */
final class ApcuBlobFlock extends ApcuBlob
{
    use Flock;
}
