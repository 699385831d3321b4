<?php

declare(strict_types=1);

namespace McpState\Exception;

/** The DSN is invalid: it has an unknown scheme or option, or a value out of range. The message names the part. */
final class InvalidDsn extends \InvalidArgumentException implements ExceptionInterface
{
}
