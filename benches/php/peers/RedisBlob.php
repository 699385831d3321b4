<?php

declare(strict_types=1);

namespace McpState\Bench\Peers;

/** The session as one document in Redis, through a Unix socket. */
class RedisBlob extends Blob
{
    private readonly \Redis $redis;

    public function __construct(string $place)
    {
        parent::__construct($place);
        $this->redis = new \Redis();
        $this->redis->connect($place);
    }

    protected function read(string $id): string|false
    {
        return $this->redis->get("session:$id");
    }

    protected function write(string $id, string $document): void
    {
        $this->redis->setex("session:$id", 3600, $document);
    }
}
