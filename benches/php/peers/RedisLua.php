<?php

declare(strict_types=1);

namespace McpState\Bench\Peers;

use McpState\Bench\Content;
use McpState\Bench\Peer;

/**
 * One Lua script in Redis for each step: one round trip, atomic, through a Unix socket. A session consists of a hash of
 * attributes and counters, a list for each owner's queue, and hashes of requests and responses.
 */
final class RedisLua implements Peer
{
    private const TTL = 3600;

    // KEYS[1] is the session. The scripts derive its other keys, which is allowed on a single server.
    private const SCRIPTS = [
        'send' => <<<'LUA'
            local id = redis.call('HINCRBY', KEYS[1], 'next_request', 1)
            redis.call('HSET', KEYS[1] .. ':pending', id, ARGV[1] .. ' ' .. ARGV[2])
            redis.call('RPUSH', KEYS[1] .. ':queue:' .. ARGV[1], ARGV[3])
            redis.call('EXPIRE', KEYS[1], ARGV[4])
            return id
            LUA,
        'take' => <<<'LUA'
            local queue = KEYS[1] .. ':queue:' .. ARGV[1]
            local messages = redis.call('LRANGE', queue, 0, -1)
            redis.call('DEL', queue)
            return messages
            LUA,
        'deliver' => <<<'LUA'
            local pending = redis.call('HGET', KEYS[1] .. ':pending', ARGV[1])
            if not pending then return 0 end
            if tonumber(string.match(pending, ' (%d+)$')) <= tonumber(ARGV[3]) then return 0 end
            return redis.call('HSETNX', KEYS[1] .. ':responses', ARGV[1], ARGV[2])
            LUA,
        'claim' => <<<'LUA'
            local pending = redis.call('HGET', KEYS[1] .. ':pending', ARGV[1])
            if not pending or string.sub(pending, 1, #ARGV[2]) ~= ARGV[2] then return false end
            local response = redis.call('HGET', KEYS[1] .. ':responses', ARGV[1])
            if not response then return false end
            redis.call('HDEL', KEYS[1] .. ':responses', ARGV[1])
            redis.call('HDEL', KEYS[1] .. ':pending', ARGV[1])
            return response
            LUA,
    ];

    private readonly \Redis $redis;
    private string $key;
    private string $owner;

    public function __construct(string $place)
    {
        $this->redis = new \Redis();
        $this->redis->connect($place);
    }

    public function populate(int $sessions, int $measured, int $content): void
    {
        $small = array_map(json_encode(...), Content::attributes(1000));
        $large = array_map(json_encode(...), Content::attributes($content));
        for ($number = 0; $number < $sessions; ++$number) {
            $key = $this->key($number);
            $pipeline = $this->redis->pipeline();
            $pipeline->hMSet($key, $number < $measured ? $large : $small);
            $pipeline->expire($key, self::TTL);
            $pipeline->exec();
        }
    }

    public function enter(int $session): void
    {
        $this->key = $this->key($session);
        $this->owner = bin2hex(random_bytes(16));
        foreach (self::SCRIPTS as $script) {
            $this->redis->script('load', $script);
        }
    }

    public function send(string $message): int
    {
        return $this->run('send', $this->owner, time() + 60, $message, self::TTL);
    }

    public function take(): ?string
    {
        $messages = $this->run('take', $this->owner);

        return $messages === [] ? null : end($messages);
    }

    public function deliver(int $id, string $response): bool
    {
        return $this->run('deliver', $id, $response, time()) === 1;
    }

    public function claim(int $id): ?string
    {
        $response = $this->run('claim', $id, $this->owner);

        return $response === false ? null : $response;
    }

    public function get(): ?string
    {
        $json = $this->redis->hGet($this->key, 'client.name');

        return $json === false ? null : json_decode($json, true);
    }

    public function patch(string $name, string $version): void
    {
        $values = ['client.name' => json_encode($name), 'client.version' => json_encode($version)];
        $this->redis->hMSet($this->key, $values);
    }

    private function run(string $script, string|int ...$arguments): mixed
    {
        static $digests = [];
        $digests[$script] ??= sha1(self::SCRIPTS[$script]);

        return $this->redis->evalSha($digests[$script], [$this->key, ...$arguments], 1);
    }

    private function key(int $session): string
    {
        return 'mcp:' . Content::id($session);
    }
}
