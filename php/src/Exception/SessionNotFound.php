<?php

declare(strict_types=1);

namespace McpState\Exception;

/**
 * The session does not exist: it was destroyed, has expired or was evicted. This is final, even if a new session takes
 * the same id (G7). HTTP servers answer with status 404.
 */
final class SessionNotFound extends \RuntimeException implements ExceptionInterface
{
}
