<?php

declare(strict_types=1);

namespace McpState\Exception;

/**
 * There is no space left in the store or on the disk under it. Nothing was changed. HTTP status 503.
 *
 * Taking, claiming, acknowledging, destroying and collecting still work, and make room.
 */
final class StoreFull extends \RuntimeException implements ExceptionInterface
{
}
