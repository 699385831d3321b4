<?php

declare(strict_types=1);

namespace McpState\Exception;

/** The store was made by a version or a machine this one does not understand. Nothing in it was touched. */
final class StoreIncompatible extends \RuntimeException implements ExceptionInterface
{
}
