<?php

declare(strict_types=1);

namespace McpState\Exception;

/** A session with this id exists already; it was left as it is. */
final class SessionExists extends \RuntimeException implements ExceptionInterface
{
}
