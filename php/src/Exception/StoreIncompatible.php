<?php

declare(strict_types=1);

namespace McpState\Exception;

/**
 * The store was created by a version of this library, or on a kind of machine, that this one cannot read. The store is
 * unchanged.
 */
final class StoreIncompatible extends \RuntimeException implements ExceptionInterface
{
}
