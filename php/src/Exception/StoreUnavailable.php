<?php

declare(strict_types=1);

namespace McpState\Exception;

/**
 * The store cannot be reached or opened, for example because a permission or a directory is missing or a server is
 * down.
 *
 * HTTP servers answer with status 503 and never with 404, because the sessions may still exist.
 */
final class StoreUnavailable extends \RuntimeException implements ExceptionInterface
{
}
