<?php

declare(strict_types=1);

namespace McpState\Bench\Server;

use McpState\Example\State\Answer;
use McpState\Example\State\SessionState;
use McpState\PendingStatus;

/**
 * A session with the best means of plain PHP. The queue and the pending questions are in the process of the request,
 * because no other process needs them. An answer is a file for which the waiting process checks every 5 ms. Attributes
 * and the counter of ids change under a lock.
 *
 * Plain PHP lacks two guarantees: nothing is cleaned up after a kill, and nothing is bounded.
 */
final class PlainSession implements SessionState
{
    private const POLL_US = 5000;

    /** @var list<string> */
    private array $queue = [];
    /** @var array<int, float> deadline by id */
    private array $pending = [];

    public function __construct(private readonly string $id, private readonly string $directory)
    {
    }

    public function id(): string
    {
        return $this->id;
    }

    public function get(string $key): mixed
    {
        $value = $this->all();
        foreach (explode('.', $key) as $segment) {
            $value = is_array($value) ? $value[$segment] ?? null : null;
        }

        return $value;
    }

    public function all(): array
    {
        return json_decode((string) file_get_contents("$this->directory/attributes"), true);
    }

    public function set(array $values): void
    {
        $this->change('attributes', static function (string $text) use ($values): string {
            $all = json_decode($text, true);
            foreach ($values as $key => $value) {
                $place = &$all;
                foreach (explode('.', $key) as $segment) {
                    $place = &$place[$segment];
                }
                $place = $value;
                unset($place);
            }

            return json_encode($all, JSON_THROW_ON_ERROR);
        });
    }

    public function update(string $key, \Closure $change): void
    {
        $this->set([$key => $change($this->get($key))]);
    }

    public function begin(int|string $id, bool $reject): bool
    {
        return true;
    }

    public function finish(int|string $id): bool
    {
        return false;
    }

    public function cancel(int|string $id): void
    {
    }

    public function reply(string $message): void
    {
        $this->queue[] = $message;
    }

    public function notify(string $message): void
    {
        $this->queue[] = $message;
    }

    public function broadcast(string $message): void
    {
        $this->queue[] = $message;
    }

    public function take(): array
    {
        [$messages, $this->queue] = [$this->queue, []];

        return $messages;
    }

    public function ask(array $message, int $timeoutMs): int
    {
        $id = (int) $this->change('counter', static fn (string $text): string => (string) ((int) $text + 1));
        touch("$this->directory/$id.waits");
        $this->pending[$id] = microtime(true) + $timeoutMs / 1000;
        $this->queue[] = json_encode($message + ['id' => $id], JSON_THROW_ON_ERROR);

        return $id;
    }

    public function claim(?int $id): Answer
    {
        if ($id === null || !isset($this->pending[$id])) {
            return new Answer(PendingStatus::Unknown);
        }
        clearstatcache(true, "$this->directory/$id.answer");
        $answered = is_file("$this->directory/$id.answer");
        $leftMs = (int) (($this->pending[$id] - microtime(true)) * 1000);
        if (!$answered && $leftMs > 0) {
            return new Answer(PendingStatus::Waiting, remainingMs: $leftMs);
        }
        unset($this->pending[$id]);
        unlink("$this->directory/$id.waits");
        if (!$answered) {
            return new Answer(PendingStatus::TimedOut);
        }
        $response = json_decode((string) file_get_contents("$this->directory/$id.answer"), true);
        unlink("$this->directory/$id.answer");

        return new Answer(PendingStatus::Answered, $response);
    }

    public function wait(int $atMostMs): void
    {
        usleep(min(self::POLL_US, $atMostMs * 1000));
    }

    public function deliver(mixed $id, string $response): ?string
    {
        if (!is_int($id) || !is_file("$this->directory/$id.waits")) {
            return 'Unknown';
        }
        $temporary = "$this->directory/$id." . getmypid() . '.tmp';
        file_put_contents($temporary, $response);
        rename($temporary, "$this->directory/$id.answer");

        return null;
    }

    public function end(): void
    {
        foreach (array_keys($this->pending) as $id) {
            @unlink("$this->directory/$id.waits");
        }
    }

    /** Changes a file under a lock, and returns its new contents. */
    private function change(string $name, \Closure $change): string
    {
        $file = fopen("$this->directory/$name", 'r+');
        flock($file, LOCK_EX);
        $text = $change((string) stream_get_contents($file));
        rewind($file);
        ftruncate($file, 0);
        fwrite($file, $text);
        fclose($file);

        return $text;
    }
}
