<?php

declare(strict_types=1);

namespace McpState\Exception;

/**
 * The connection broke in the middle of an operation: it was applied in full or not at all, and nothing says which.
 */
final class OutcomeUnknown extends \RuntimeException implements ExceptionInterface
{
}
