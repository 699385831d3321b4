<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

/**
 * Which values a session can keep, and what becomes of those that JSON cannot express.
 *
 * @internal
 */
final class Value
{
    private const FLAGS = \JSON_UNESCAPED_UNICODE | \JSON_UNESCAPED_SLASHES | \JSON_PRESERVE_ZERO_FRACTION;

    /**
     * Whether $value is data. Objects that do not say what they are as JSON are not: they belong to the process, and may
     * hold secrets.
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

    /** $value as JSON text; bytes that are not UTF-8 become U+FFFD. Null when JSON cannot express it at all. */
    public static function encode(mixed $value): ?string
    {
        try {
            return \json_encode($value, self::FLAGS | \JSON_THROW_ON_ERROR | \JSON_INVALID_UTF8_SUBSTITUTE);
        } catch (\JsonException) {
            return null;
        }
    }

    /** Whether JSON can express $value as it is. */
    public static function isStorable(mixed $value): bool
    {
        return \json_encode($value) !== false;
    }
}
