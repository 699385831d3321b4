<?php

declare(strict_types=1);

namespace McpState\Logiscape;

/**
 * Merges the changes of two requests to one record, cell by cell.
 *
 * A shape describes the cells. An array describes an object, with a shape for each key. {@see LIST_} describes a list,
 * to which both sides add and remove elements. Every other value is one cell. For each cell:
 *
 * - If only one side changed or removed it, the result is that side's value.
 * - If both sides changed it, the result is the value of the later save. For integers the result is the larger one, so
 *   that clocks and counters never go back.
 * - If one side removed it, the result has no such cell.
 *
 * @internal
 */
final class ThreeWay
{
    public const LIST_ = true;

    /**
     * @param array<string, mixed>    $shape
     * @param array<array-key, mixed> $base   the record that the later side loaded
     * @param array<array-key, mixed> $mine   the record as the later side changed it
     * @param array<array-key, mixed> $theirs the stored record
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

            // The SDK leaves out some empty objects; the result leaves them out as well.
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
     * @return list<mixed> the stored elements without the removed ones, followed by the added ones
     */
    private static function elements(array $base, array $mine, array $theirs): array
    {
        return [...self::without($theirs, self::without($base, $mine)), ...self::without($mine, $base)];
    }

    /**
     * @param list<mixed> $list
     * @param list<mixed> $elements each of them removes the first equal element of $list
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
