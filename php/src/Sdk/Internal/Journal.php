<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

/**
 * The uncommitted attribute writes of one session object, and reads through them.
 *
 * Invariant: no key is recorded twice, and no key below a set key is recorded, because a write below changes that value
 * instead. Applying first the removals and then the values therefore has the same result as the writes in their order.
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

    /** Records the changed elements of the collection under $key, in place of earlier writes to it. */
    public function merge(string $key, ElementChange $change): void
    {
        $this->drop($key);
        $this->merged[$key] = $change;
    }

    /**
     * Returns the value under $key with the recorded writes applied.
     *
     * @param \Closure(): mixed $committed returns the committed value under $key; null if there is none
     */
    public function read(string $key, \Closure $committed): mixed
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

        foreach ($this->writesBelow($key) as $path => $apply) {
            $apply($within, 'value' . \substr((string) $path, \strlen($key)));
        }

        return $within['value'] ?? null;
    }

    /**
     * Returns all attributes with the recorded writes applied.
     *
     * @param array<array-key, mixed> $committed
     *
     * @return array<array-key, mixed>
     */
    public function readAll(array $committed): array
    {
        foreach ($this->writesBelow(null) as $path => $apply) {
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

    /** Returns a journal of only the writes under this top-level key. */
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

    /** Drops the writes to $key and to the keys below it. */
    public function drop(string $key): void
    {
        foreach ([&$this->set, &$this->removed, &$this->merged] as &$list) {
            foreach ($list as $written => $_) {
                if (Path::isWithin((string) $written, $key)) {
                    unset($list[$written]);
                }
            }
        }
    }

    /**
     * Returns the writes below a key (null: all writes), in the order of the commit.
     *
     * @return iterable<array-key, \Closure(array<array-key, mixed>&, string): void>
     */
    private function writesBelow(?string $key): iterable
    {
        $isBelow = static fn (int|string $written): bool => $key === null || Path::isWithin((string) $written, $key);

        foreach ($this->removed as $written => $_) {
            if ($isBelow($written)) {
                yield $written => static function (array &$data, string $path): void {
                    Path::forget($data, $path);
                };
            }
        }

        foreach ($this->set as $written => $value) {
            if ($isBelow($written)) {
                yield $written => static function (array &$data, string $path) use ($value): void {
                    Path::set($data, $path, $value);
                };
            }
        }

        foreach ($this->merged as $written => $change) {
            if ($isBelow($written)) {
                yield $written => static function (array &$data, string $path) use ($change): void {
                    Path::set($data, $path, $change->applyTo(Path::get($data, $path)));
                };
            }
        }
    }
}
