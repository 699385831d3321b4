<?php

declare(strict_types=1);

namespace McpState\Exception;

/** A bug of this library. Please report the message. */
final class InternalError extends \RuntimeException implements ExceptionInterface
{
}
