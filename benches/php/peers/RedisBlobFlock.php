<?php

declare(strict_types=1);

namespace McpState\Bench\Peers;

/**
 * The session as one document in Redis, with a lock per session.
 */
final class RedisBlobFlock extends RedisBlob
{
    use Flock;
}
