<?php

declare(strict_types=1);

namespace McpState\Bench\Peers;

/**
 * The session as one document in APCu, with a lock per session.
 */
final class ApcuBlobFlock extends ApcuBlob
{
    use Flock;
}
