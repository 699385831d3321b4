<?php

declare(strict_types=1);

namespace McpState\Exception;

/** A bug in this library. Please report it together with the message. */
final class InternalError extends \RuntimeException implements ExceptionInterface
{
}
