<?php

declare(strict_types=1);

namespace McpState\Bench\Peers;

use McpState\Bench\Content;
use McpState\Bench\Peer;

/**
 * A session as one JSON document, which each step reads, changes and writes back as a whole, like PHP SDKs. The
 * subclasses define the place.
 *
 * Without a lock, updates are lost as soon as two processes use one session; {@see Flock} locks each step. Queues and
 * requests are separate for each owner, so that the work is the same as for the other peers.
 */
abstract class Blob implements Peer
{
    protected string $id;
    private string $owner;

    public function __construct(protected readonly string $place)
    {
    }

    abstract protected function read(string $id): string|false;

    abstract protected function write(string $id, string $document): void;

    public function populate(int $sessions, int $measured, int $content): void
    {
        $small = $this->document(1000);
        $large = $this->document($content);
        for ($number = 0; $number < $sessions; ++$number) {
            $this->write(Content::id($number), $number < $measured ? $large : $small);
        }
    }

    public function enter(int $session): void
    {
        $this->id = Content::id($session);
        $this->owner = bin2hex(random_bytes(16));
    }

    public function send(string $message): int
    {
        return $this->change(function (array &$data) use ($message): int {
            $id = $data['_mcp']['request_id_counter']++;
            $data['_mcp']['pending_requests'][$id] = ['owner' => $this->owner, 'timeout' => 60, 'timestamp' => time()];
            $data['_mcp']['outgoing_queue'][] = ['owner' => $this->owner, 'message' => $message];

            return $id;
        });
    }

    public function take(): ?string
    {
        return $this->change(function (array &$data): ?string {
            $message = null;
            foreach ($data['_mcp']['outgoing_queue'] as $at => $entry) {
                if ($entry['owner'] === $this->owner) {
                    $message = $entry['message'];
                    unset($data['_mcp']['outgoing_queue'][$at]);
                }
            }
            $data['_mcp']['outgoing_queue'] = array_values($data['_mcp']['outgoing_queue']);

            return $message;
        });
    }

    public function deliver(int $id, string $response): bool
    {
        return $this->change(static function (array &$data) use ($id, $response): bool {
            $entry = $data['_mcp']['pending_requests'][$id] ?? null;
            if ($entry === null || $entry['timestamp'] + $entry['timeout'] <= time()) {
                return false;
            }
            $data['_mcp']['responses'][$id] = $response;

            return true;
        });
    }

    public function claim(int $id): ?string
    {
        return $this->change(function (array &$data) use ($id): ?string {
            $response = $data['_mcp']['responses'][$id] ?? null;
            if ($response === null || ($data['_mcp']['pending_requests'][$id]['owner'] ?? null) !== $this->owner) {
                return null;
            }
            unset($data['_mcp']['responses'][$id], $data['_mcp']['pending_requests'][$id]);

            return $response;
        });
    }

    /** Tells whether there is a response to claim. */
    public function isAnswered(int $id): bool
    {
        return $this->guarded(fn (): bool => isset($this->data()['_mcp']['responses'][$id]));
    }

    public function get(): ?string
    {
        return $this->guarded(fn (): ?string => $this->data()['client']['name'] ?? null);
    }

    public function patch(string $name, string $version): void
    {
        $this->change(static function (array &$data) use ($name, $version): bool {
            $data['client']['name'] = $name;
            $data['client']['version'] = $version;

            return true;
        });
    }

    /** @return array<string, mixed> */
    private function data(): array
    {
        $document = $this->read($this->id);

        return $document === false ? throw new \RuntimeException("there is no session $this->id")
            : json_decode($document, true, flags: JSON_THROW_ON_ERROR);
    }

    private function change(\Closure $change): mixed
    {
        return $this->guarded(function () use ($change): mixed {
            $data = $this->data();
            $result = $change($data);
            $this->write($this->id, json_encode($data, JSON_THROW_ON_ERROR));

            return $result;
        });
    }

    /** Runs one step. This class excludes no other process meanwhile. */
    protected function guarded(\Closure $step): mixed
    {
        return $step();
    }

    private function document(int $bytes): string
    {
        $data = ['_mcp' => [
            'request_id_counter' => 1000,
            'pending_requests' => [],
            'outgoing_queue' => [],
            'responses' => [],
        ]];
        foreach (Content::attributes($bytes) as $key => $value) {
            [$group, $name] = explode('.', $key);
            $data[$group][$name] = $value;
        }

        return json_encode($data, JSON_THROW_ON_ERROR);
    }
}
