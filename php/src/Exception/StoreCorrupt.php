<?php

declare(strict_types=1);

namespace McpState\Exception;

/** The store holds bytes that nothing of this library wrote. Nothing in it was touched. */
final class StoreCorrupt extends \RuntimeException implements ExceptionInterface
{
}
