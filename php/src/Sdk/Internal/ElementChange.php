<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

/**
 * The elements that one writer added to and removed from a collection that several writers change concurrently.
 *
 * The elements of a list are its values, in no particular order. The elements of a map are its entries.
 *
 * @internal
 */
final class ElementChange
{
    /**
     * @param array<array-key, mixed> $put
     * @param array<array-key, mixed> $removed
     */
    private function __construct(
        private readonly bool $isList,
        private readonly array $put,
        private readonly array $removed,
    ) {
    }

    /**
     * Returns the change that leads from one collection to another.
     *
     * @param array<array-key, mixed> $from
     * @param array<array-key, mixed> $to
     */
    public static function between(array $from, array $to): self
    {
        if (\array_is_list($from) && \array_is_list($to)) {
            return new self(true, self::without($to, $from), self::without($from, $to));
        }

        $put = \array_filter(
            $to,
            static fn (mixed $value, int|string $key): bool => ($from[$key] ?? null) !== $value,
            \ARRAY_FILTER_USE_BOTH,
        );

        return new self(false, $put, \array_diff_key($from, $to));
    }

    /** Tells whether JSON can express the added elements. */
    public function isStorable(): bool
    {
        return Value::isStorable($this->put);
    }

    /**
     * Returns the current collection with this change applied.
     *
     * @return array<array-key, mixed>
     */
    public function applyTo(mixed $current): array
    {
        $current = \is_array($current) ? $current : [];

        if ($this->isList) {
            $kept = self::without($current, $this->removed);

            return [...$kept, ...self::without($this->put, $kept)];
        }

        return $this->put + \array_diff_key($current, $this->removed);
    }

    /**
     * @param array<array-key, mixed> $values
     * @param array<array-key, mixed> $others
     *
     * @return list<mixed>
     */
    private static function without(array $values, array $others): array
    {
        return \array_values(\array_filter(
            $values,
            static fn (mixed $value): bool => !\in_array($value, $others, true),
        ));
    }
}
