<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

/**
 * The attribute writes of one session object that are not committed yet, and how the attributes look through them.
 *
 * Normal form: no key is named twice, and nothing lies below a key that is set, since a write below goes into that
 * value. So "first the removals, then the values" gives what the writes gave in their order.
 *
 * @internal
 */
final class Journal
{
    /** @var array<array-key, mixed> */
    private array $set = [];

    /** @var array<array-key, true> */
    private array $removed = [];

    /** @var array<array-key, ElementChange> */
    private array $merged = [];

    public function isEmpty(): bool
    {
        return $this->set === [] && $this->removed === [] && $this->merged === [];
    }

    public function set(string $key, mixed $value): void
    {
        foreach ($this->set as $ancestor => $outer) {
            if ($key !== (string) $ancestor && Path::isWithin($key, (string) $ancestor)) {
                $outer = ['value' => $outer];
                Path::set($outer, 'value' . \substr($key, \strlen((string) $ancestor)), $value);
                $this->set[$ancestor] = $outer['value'];

                return;
            }
        }

        $this->drop($key);
        $this->set[$key] = $value;
    }

    public function forget(string $key): void
    {
        foreach ($this->set as $ancestor => $outer) {
            if ($key !== (string) $ancestor && Path::isWithin($key, (string) $ancestor)) {
                $outer = ['value' => $outer];
                Path::forget($outer, 'value' . \substr($key, \strlen((string) $ancestor)));
                $this->set[$ancestor] = $outer['value'];

                return;
            }
        }

        $this->drop($key);
        $this->removed[$key] = true;
    }

    /** Notes what was done to the elements of the collection under $key, in place of what was noted before. */
    public function merge(string $key, ElementChange $change): void
    {
        $this->drop($key);
        $this->merged[$key] = $change;
    }

    /**
     * The value under $key as it looks through the journal.
     *
     * @param \Closure(): mixed $committed what is committed under $key; null: nothing
     */
    public function look(string $key, \Closure $committed): mixed
    {
        foreach ($this->set as $ancestor => $outer) {
            if (Path::isWithin($key, (string) $ancestor)) {
                return Path::get(['value' => $outer], 'value' . \substr($key, \strlen((string) $ancestor)));
            }
        }

        $isRemoved = false;

        foreach ($this->removed as $ancestor => $_) {
            $isRemoved = $isRemoved || Path::isWithin($key, (string) $ancestor);
        }

        $within = ['value' => $isRemoved ? null : $committed()];

        foreach ($this->below($key) as $path => $apply) {
            $apply($within, 'value' . \substr((string) $path, \strlen($key)));
        }

        return $within['value'] ?? null;
    }

    /**
     * All attributes as they look through the journal.
     *
     * @param array<array-key, mixed> $committed
     *
     * @return array<array-key, mixed>
     */
    public function lookAtAll(array $committed): array
    {
        foreach ($this->below(null) as $path => $apply) {
            $apply($committed, (string) $path);
        }

        return $committed;
    }

    /**
     * Drops the values that JSON cannot express.
     *
     * @return list<string> their keys
     */
    public function dropUnstorable(): array
    {
        $keys = [
            ...\array_keys(\array_filter($this->set, static fn (mixed $value): bool => !Value::isStorable($value))),
            ...\array_keys(\array_filter($this->merged, static fn (ElementChange $change): bool => !$change->isStorable())),
        ];

        foreach ($keys as $key) {
            unset($this->set[$key], $this->merged[$key]);
        }

        return \array_map('strval', $keys);
    }

    /** @return array<array-key, mixed> values by key */
    public function values(): array
    {
        return $this->set;
    }

    /** @return list<string> keys */
    public function removals(): array
    {
        return \array_map('strval', \array_keys($this->removed));
    }

    /** @return array<array-key, ElementChange> by key */
    public function elementChanges(): array
    {
        return $this->merged;
    }

    /** Only what is noted under the given top-level key. */
    public function only(string $top): self
    {
        $only = new self();

        foreach (['set', 'removed', 'merged'] as $list) {
            $only->{$list} = \array_filter(
                $this->{$list},
                static fn (int|string $key): bool => Path::isWithin((string) $key, $top),
                \ARRAY_FILTER_USE_KEY,
            );
        }

        return $only;
    }

    /** Forgets what was noted for $key and below it. */
    public function drop(string $key): void
    {
        foreach ([&$this->set, &$this->removed, &$this->merged] as &$list) {
            foreach ($list as $noted => $_) {
                if (Path::isWithin((string) $noted, $key)) {
                    unset($list[$noted]);
                }
            }
        }
    }

    /**
     * What the journal does below a key (null: anywhere), in the order in which it is committed.
     *
     * @return iterable<array-key, \Closure(array<array-key, mixed>&, string): void>
     */
    private function below(?string $key): iterable
    {
        $isBelow = static fn (int|string $noted): bool => $key === null || Path::isWithin((string) $noted, $key);

        foreach ($this->removed as $noted => $_) {
            if ($isBelow($noted)) {
                yield $noted => static function (array &$data, string $path): void {
                    Path::forget($data, $path);
                };
            }
        }

        foreach ($this->set as $noted => $value) {
            if ($isBelow($noted)) {
                yield $noted => static function (array &$data, string $path) use ($value): void {
                    Path::set($data, $path, $value);
                };
            }
        }

        foreach ($this->merged as $noted => $change) {
            if ($isBelow($noted)) {
                yield $noted => static function (array &$data, string $path) use ($change): void {
                    Path::set($data, $path, $change->applyTo(Path::get($data, $path)));
                };
            }
        }
    }
}
