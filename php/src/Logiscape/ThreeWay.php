<?php

declare(strict_types=1);

namespace McpState\Logiscape;

/**
 * Brings together what two requests made of one record, cell by cell.
 *
 * A shape says where the cells are: an array is an object, each key with the shape of its value; {@see LIST_} is a list
 * whose elements come and go one by one; everything else is one cell, whatever is in it. Of each cell:
 *
 * - what only one side changed or removed is taken from that side;
 * - what both sides changed is the later save's, but integers become the larger: clocks and counters do not go back;
 * - what one side removed is gone, whatever the other made of it.
 *
 * @internal
 */
final class ThreeWay
{
    public const LIST_ = true;

    /**
     * @param array<string, mixed>    $shape
     * @param array<array-key, mixed> $base   what the later side started from
     * @param array<array-key, mixed> $mine   what it made of it
     * @param array<array-key, mixed> $theirs what is stored by now
     *
     * @return array<array-key, mixed>
     */
    public static function merge(array $shape, array $base, array $mine, array $theirs): array
    {
        $merged = [];

        foreach ($theirs + $mine as $key => $_) {
            $sides = [$base[$key] ?? null, $mine[$key] ?? null, $theirs[$key] ?? null];
            $inner = $shape[$key] ?? null;
            $areArrays = \array_filter($sides, static fn (mixed $side): bool => !\is_array($side ?? [])) === [];

            $value = match (true) {
                $inner === null || !$areArrays => self::cell(...$sides),
                $inner === self::LIST_ => self::elements(...\array_map(self::listed(...), $sides)),
                default => self::merge($inner, ...\array_map(static fn (?array $side): array => $side ?? [], $sides)),
            };

            // An object that the SDK leaves out when it is empty stays out.
            if ($value !== null && ($value !== [] || isset($sides[1], $sides[2]))) {
                $merged[$key] = $value;
            }
        }

        return $merged;
    }

    private static function cell(mixed $base, mixed $mine, mixed $theirs): mixed
    {
        return match (true) {
            $mine === $base => $theirs,
            $theirs === $base => $mine,
            $base !== null && ($mine === null || $theirs === null) => null,
            \is_int($mine) && \is_int($theirs) => \max($mine, $theirs),
            default => $mine ?? $theirs,
        };
    }

    /**
     * @param list<mixed> $base
     * @param list<mixed> $mine
     * @param list<mixed> $theirs
     *
     * @return list<mixed> what is stored, without what was removed, and then what was added
     */
    private static function elements(array $base, array $mine, array $theirs): array
    {
        return [...self::without($theirs, self::without($base, $mine)), ...self::without($mine, $base)];
    }

    /**
     * @param list<mixed> $list
     * @param list<mixed> $elements each takes out the first that is equal to it
     *
     * @return list<mixed>
     */
    private static function without(array $list, array $elements): array
    {
        $counts = \array_count_values(\array_map(self::text(...), $elements));

        return \array_values(\array_filter($list, static function (mixed $element) use (&$counts): bool {
            $text = self::text($element);
            $isKept = ($counts[$text] ?? 0) === 0;
            $isKept || --$counts[$text];

            return $isKept;
        }));
    }

    /**
     * @param array<array-key, mixed>|null $side
     *
     * @return list<mixed>
     */
    private static function listed(?array $side): array
    {
        return \array_values($side ?? []);
    }

    private static function text(mixed $element): string
    {
        return \json_encode($element, \JSON_THROW_ON_ERROR | \JSON_PRESERVE_ZERO_FRACTION);
    }
}
