<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

/**
 * Something for each context that a scope names. What is kept for an object goes with the object.
 *
 * @template T
 *
 * @internal
 */
final class PerContext
{
    /** @var array<int|string, T> */
    private array $named = [];

    /** @var \WeakMap<object, T> */
    private \WeakMap $ofObjects;

    public function __construct()
    {
        $this->ofObjects = new \WeakMap();
    }

    /** @return T|null */
    public function get(int|string|object $context): mixed
    {
        return \is_object($context) ? $this->ofObjects[$context] ?? null : $this->named[$context] ?? null;
    }

    /**
     * @param T $value
     *
     * @return T
     */
    public function set(int|string|object $context, mixed $value): mixed
    {
        return \is_object($context) ? $this->ofObjects[$context] = $value : $this->named[$context] = $value;
    }

    public function unset(int|string|object $context): void
    {
        if (\is_object($context)) {
            unset($this->ofObjects[$context]);
        } else {
            unset($this->named[$context]);
        }
    }
}
