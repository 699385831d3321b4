<?php

declare(strict_types=1);

namespace McpState\Exception;

/**
 * The store, or the disk that holds it, has no space left (G10). The operation changed nothing. HTTP servers answer
 * with status 503.
 *
 * Taking, claiming, acknowledging, destroying and collecting still work, and free space.
 */
final class StoreFull extends \RuntimeException implements ExceptionInterface
{
}
