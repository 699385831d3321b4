<?php

declare(strict_types=1);

namespace McpState\Internal;

use McpState\Exception\InvalidArgument;

/**
 * The one way values become JSON text and back.
 *
 * Decoded objects are associative arrays, so an empty object comes back as `[]`, as everywhere in PHP.
 *
 * @internal
 */
final class Json
{
    private const FLAGS = \JSON_UNESCAPED_UNICODE | \JSON_UNESCAPED_SLASHES | \JSON_PRESERVE_ZERO_FRACTION
        | \JSON_THROW_ON_ERROR;

    /** @throws InvalidArgument when JSON cannot express $value: not UTF-8, NAN, INF, a resource, a cycle */
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

    /** @throws InvalidArgument when $text is not JSON */
    public static function decode(string $text): mixed
    {
        try {
            return \json_decode($text, true, 512, \JSON_THROW_ON_ERROR);
        } catch (\JsonException $e) {
            throw new InvalidArgument('a text of ' . \strlen($text) . ' bytes is not JSON: ' . $e->getMessage(), 0, $e);
        }
    }
}
