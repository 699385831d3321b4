<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

/**
 * A value for each context of a scope. The value of a context that is an object is freed together with the object.
 *
 * @template T
 *
 * @internal
 */
final class PerContext
{
    /** @var array<int|string, T> */
    private array $byKey = [];

    /** @var \WeakMap<object, T> */
    private \WeakMap $byObject;

    public function __construct()
    {
        $this->byObject = new \WeakMap();
    }

    /** @return T|null */
    public function get(int|string|object $context): mixed
    {
        return \is_object($context) ? $this->byObject[$context] ?? null : $this->byKey[$context] ?? null;
    }

    /**
     * @param T $value
     *
     * @return T
     */
    public function set(int|string|object $context, mixed $value): mixed
    {
        return \is_object($context) ? $this->byObject[$context] = $value : $this->byKey[$context] = $value;
    }

    public function unset(int|string|object $context): void
    {
        if (\is_object($context)) {
            unset($this->byObject[$context]);
        } else {
            unset($this->byKey[$context]);
        }
    }
}
