<?php

declare(strict_types=1);

namespace McpState\Tests\Fuzz;

/**
 * A model of one session in plain PHP arrays, written from the documentation of the methods.
 *
 * A value exists from `set()` until another call replaces or removes it. An array that was never set exists while there
 * is a value below it.
 */
final class Model
{
    /** @var array<string|int, array{set: mixed}|array{below: array<string|int, mixed>}> */
    private array $attributes = [];
    /** @var list<array{int, string, string}> unacknowledged messages: sequence number, message, context */
    public array $queue = [];
    private int $sequence = 0;
    /** @var array<int, string|null> pending requests, each with its answer or null */
    public array $pending = [];
    /** @var list<int|string> the client's requests in flight */
    public array $inFlight = [];

    public function get(string $key): mixed
    {
        $nodes = $this->attributes;
        $path = \explode('.', $key);

        foreach ($path as $at => $name) {
            if (!isset($nodes[$name])) {
                return null;
            }

            $node = $nodes[$name];

            if (\array_key_exists('set', $node)) {
                $value = $node['set'];

                foreach (\array_slice($path, $at + 1) as $rest) {
                    if (!\is_array($value) || !\array_key_exists($rest, $value)) {
                        return null;
                    }

                    $value = $value[$rest];
                }

                return $value;
            }

            $nodes = $node['below'];
        }

        return self::values($nodes);
    }

    /** @return array<string|int, mixed> */
    public function all(): array
    {
        return self::values($this->attributes);
    }

    public function set(string $key, mixed $value): void
    {
        $nodes = &$this->attributes;
        $path = \explode('.', $key);
        $last = \array_pop($path);

        foreach ($path as $at => $name) {
            $nodes[$name] ??= ['below' => []];

            if (\array_key_exists('set', $nodes[$name])) {
                $place = &$nodes[$name]['set'];

                foreach ([...\array_slice($path, $at + 1), $last] as $rest) {
                    $place = \is_array($place) ? $place : [];
                    $place[$rest] ??= null;
                    $place = &$place[$rest];
                }

                $place = $value;

                return;
            }

            $nodes = &$nodes[$name]['below'];
        }

        $nodes[$last] = ['set' => $value];
    }

    public function remove(string $key): bool
    {
        return self::removeIn($this->attributes, \explode('.', $key));
    }

    public function enqueue(string $message, string $context): int
    {
        $this->queue[] = [++$this->sequence, $message, $context];

        return $this->sequence;
    }

    public function acknowledge(int $upTo): int
    {
        $before = \count($this->queue);
        $this->queue = \array_values(\array_filter($this->queue, static fn (array $message) => $message[0] > $upTo));

        return $before - \count($this->queue);
    }

    /** Tells whether two values are equal in JSON. */
    public static function same(mixed $a, mixed $b): bool
    {
        if (!\is_array($a) || !\is_array($b)) {
            return $a === $b;
        }

        foreach ($a as $name => $value) {
            if (!\array_key_exists($name, $b) || !self::same($value, $b[$name])) {
                return false;
            }
        }

        return \count($a) === \count($b);
    }

    /**
     * @param array<string|int, mixed> $nodes
     *
     * @return array<string|int, mixed>
     */
    private static function values(array $nodes): array
    {
        return \array_map(
            static fn (array $node) => \array_key_exists('set', $node) ? $node['set'] : self::values($node['below']),
            $nodes,
        );
    }

    /**
     * @param array<string|int, mixed> $nodes
     * @param list<string>             $path
     */
    private static function removeIn(array &$nodes, array $path): bool
    {
        $name = \array_shift($path);

        if (!isset($nodes[$name])) {
            return false;
        }

        if ($path === []) {
            unset($nodes[$name]);

            return true;
        }

        if (!\array_key_exists('set', $nodes[$name])) {
            $removed = self::removeIn($nodes[$name]['below'], $path);

            if ($nodes[$name]['below'] === []) {
                unset($nodes[$name]);
            }

            return $removed;
        }

        $value = &$nodes[$name]['set'];
        $last = \array_pop($path);

        foreach ($path as $rest) {
            if (!\is_array($value) || !\array_key_exists($rest, $value)) {
                return false;
            }

            $value = &$value[$rest];
        }

        if (!\is_array($value) || !\array_key_exists($last, $value)) {
            return false;
        }

        unset($value[$last]);

        return true;
    }
}
