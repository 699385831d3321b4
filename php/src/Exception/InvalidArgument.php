<?php

declare(strict_types=1);

namespace McpState\Exception;

/**
 * A value that no store accepts: an id, a key, a message, a time, a number, something JSON cannot express.
 *
 * The message names the value and what is allowed.
 */
final class InvalidArgument extends \InvalidArgumentException implements ExceptionInterface
{
}
