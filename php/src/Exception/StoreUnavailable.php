<?php

declare(strict_types=1);

namespace McpState\Exception;

/**
 * The store cannot be reached or opened now: permissions, a missing directory, a server that is down.
 *
 * HTTP status 503, never 404: the sessions may well be there.
 */
final class StoreUnavailable extends \RuntimeException implements ExceptionInterface
{
}
