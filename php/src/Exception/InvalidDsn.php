<?php

declare(strict_types=1);

namespace McpState\Exception;

/** The DSN names no store: an unknown scheme or option, or a value out of range. The message says which. */
final class InvalidDsn extends \InvalidArgumentException implements ExceptionInterface
{
}
