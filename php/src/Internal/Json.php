<?php

declare(strict_types=1);

namespace McpState\Internal;

use McpState\Exception\InvalidArgument;

/**
 * The only place that converts values to JSON text and back.
 *
 * Decoded objects are associative arrays, so an empty object becomes `[]`.
 *
 * @internal
 */
final class Json
{
    private const FLAGS = \JSON_UNESCAPED_UNICODE | \JSON_UNESCAPED_SLASHES | \JSON_PRESERVE_ZERO_FRACTION
        | \JSON_THROW_ON_ERROR;

    /** @throws InvalidArgument if JSON cannot express $value: invalid UTF-8, NAN, INF, a resource or a cycle */
    public static function encode(mixed $value): string
    {
        try {
            return \json_encode($value, self::FLAGS);
        } catch (\JsonException $e) {
            throw new InvalidArgument(
                'a value of type ' . \get_debug_type($value) . ' cannot become JSON: ' . $e->getMessage(),
                0,
                $e,
            );
        }
    }

    /** @throws InvalidArgument if $text is not JSON */
    public static function decode(string $text): mixed
    {
        try {
            return \json_decode($text, true, 512, \JSON_THROW_ON_ERROR);
        } catch (\JsonException $e) {
            throw new InvalidArgument('a text of ' . \strlen($text) . ' bytes is not JSON: ' . $e->getMessage(), 0, $e);
        }
    }
}
