<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

/**
 * Dotted keys in nested arrays, with the rules of the SDK's sessions.
 *
 * @internal
 */
final class Path
{
    /**
     * Returns the value under $key; null if there is none.
     *
     * @param array<array-key, mixed> $data
     */
    public static function get(array $data, string $key): mixed
    {
        $value = $data;

        foreach (\explode('.', $key) as $segment) {
            if ($value instanceof \stdClass) {
                $value = (array) $value;
            }

            if (!\is_array($value) || !\array_key_exists($segment, $value)) {
                return null;
            }

            $value = $value[$segment];
        }

        return $value;
    }

    /** @param array<array-key, mixed> $data */
    public static function set(array &$data, string $key, mixed $value): void
    {
        $place = &$data;

        foreach (\explode('.', $key) as $segment) {
            if (!\is_array($place)) {
                $place = $place instanceof \stdClass ? (array) $place : [];
            }

            $place = &$place[$segment];
        }

        $place = $value;
    }

    /** @param array<array-key, mixed> $data */
    public static function forget(array &$data, string $key): void
    {
        $segments = \explode('.', $key);
        $last = \array_pop($segments);
        $place = &$data;

        foreach ($segments as $segment) {
            if (($place[$segment] ?? null) instanceof \stdClass) {
                $place[$segment] = (array) $place[$segment];
            }

            if (!\is_array($place[$segment] ?? null)) {
                return;
            }

            $place = &$place[$segment];
        }

        unset($place[$last]);
    }

    /** Tells whether $key equals $ancestor or is below it. */
    public static function isWithin(string $key, string $ancestor): bool
    {
        return $key === $ancestor || \str_starts_with($key, $ancestor . '.');
    }
}
