<?php

declare(strict_types=1);

namespace McpState\Tests\Fuzz;

use McpState\OwnerKind;

/** Random values of all types. */
final class Values
{
    /**
     * @template T
     *
     * @param list<T> $choices
     *
     * @return T
     */
    public static function pick(array $choices): mixed
    {
        return $choices[\mt_rand(0, \count($choices) - 1)];
    }

    public static function text(): string
    {
        return match (\mt_rand(0, 9)) {
            0 => '',
            1 => self::bytes(\mt_rand(0, 40)),
            2 => \str_repeat('x', self::pick([128, 129, 255, 256, 5000])),
            3 => "\0",
            4 => "caf\xc3",
            5 => self::pick(['1', '{}', '{"id":1}', '[', 'null', '{"method":"m"}']),
            default => self::pick(['a', 'a.b', 'a.b.c', 'a.0', 'a..b', '.', 'é', 'a b', 'topic', 'principal']),
        };
    }

    public static function bytes(int $length): string
    {
        $text = '';

        while (\strlen($text) < $length) {
            $text .= \chr(\mt_rand(0, 255));
        }

        return $text;
    }

    public static function number(): int
    {
        return self::pick([0, 1, -1, 2, 5, 100, 1000, \PHP_INT_MAX, \PHP_INT_MIN, 1 << 32, \mt_rand(-10, 10), \mt_rand()]);
    }

    /** Returns a value that JSON can express. */
    public static function json(int $depth = 0): mixed
    {
        return match (\mt_rand(0, $depth > 3 ? 5 : 8)) {
            0 => null,
            1 => (bool) \mt_rand(0, 1),
            2 => self::number(),
            3 => self::pick([0.5, -0.0, 1.0, 1e25, 5e-324, \PHP_FLOAT_MAX, 0.1 + 0.2, \mt_rand() / 7]),
            4 => self::pick(['', 'text', "\0\x1f", 'é😀', '/"\\']),
            5 => [],
            6 => \array_map(static fn () => self::json($depth + 1), \range(0, \mt_rand(0, 3))),
            default => \array_combine($names = self::pick([['a'], ['b', 'a'], ['0', '1'], ['1'], ['01', '']]), \array_map(
                static fn () => self::json($depth + 1),
                $names,
            )),
        };
    }

    public static function any(): mixed
    {
        return match (\mt_rand(0, 15)) {
            0 => \NAN,
            1 => \INF,
            2 => "caf\xc3",
            3 => new \stdClass(),
            4 => static fn () => 1,
            5 => \STDIN,
            6 => OwnerKind::Stream,
            7 => new \ArrayObject([1]),
            8 => \array_fill(0, 3, self::bytes(9)),
            9 => self::deep(self::pick([90, 110, 600])),
            10 => self::text(),
            default => self::json(),
        };
    }

    /** @return array<mixed> */
    public static function deep(int $levels): array
    {
        $value = [];

        while (--$levels > 0) {
            $value = [$value];
        }

        return $value;
    }
}
