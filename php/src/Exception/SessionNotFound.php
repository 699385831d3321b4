<?php

declare(strict_types=1);

namespace McpState\Exception;

/**
 * The session is gone for good: destroyed, expired or evicted, even if a new one has taken its id. HTTP status 404.
 */
final class SessionNotFound extends \RuntimeException implements ExceptionInterface
{
}
