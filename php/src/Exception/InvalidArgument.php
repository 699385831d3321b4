<?php

declare(strict_types=1);

namespace McpState\Exception;

/**
 * An argument that no store accepts, for example a malformed id or key, a negative duration, or a value that JSON
 * cannot express. The message names the value and says what is allowed.
 */
final class InvalidArgument extends \InvalidArgumentException implements ExceptionInterface
{
}
