<?php

declare(strict_types=1);

namespace McpState\Exception;

/** The store contains bytes that this library did not write. The operation changed nothing. */
final class StoreCorrupt extends \RuntimeException implements ExceptionInterface
{
}
