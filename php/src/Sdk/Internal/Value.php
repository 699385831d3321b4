<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

/**
 * Tells which values a session can keep, and encodes them as JSON.
 *
 * @internal
 */
final class Value
{
    private const FLAGS = \JSON_UNESCAPED_UNICODE | \JSON_UNESCAPED_SLASHES | \JSON_PRESERVE_ZERO_FRACTION;

    /**
     * Tells whether $value is data. An object that does not define its JSON form is not: it belongs to the process, and
     * may hold secrets.
     */
    public static function isData(mixed $value): bool
    {
        if ($value instanceof \stdClass) {
            $value = (array) $value;
        }

        if (\is_array($value)) {
            foreach ($value as $element) {
                if (!self::isData($element)) {
                    return false;
                }
            }

            return true;
        }

        return $value === null || \is_scalar($value)
            || $value instanceof \JsonSerializable || $value instanceof \BackedEnum;
    }

    /** Returns $value as JSON text, with U+FFFD for bytes that are not UTF-8; null if JSON cannot express it at all. */
    public static function encode(mixed $value): ?string
    {
        try {
            return \json_encode($value, self::FLAGS | \JSON_THROW_ON_ERROR | \JSON_INVALID_UTF8_SUBSTITUTE);
        } catch (\JsonException) {
            return null;
        }
    }

    /** Tells whether JSON can express $value unchanged. */
    public static function isStorable(mixed $value): bool
    {
        return \json_encode($value) !== false;
    }
}
