<?php

declare(strict_types=1);

namespace McpState\Exception;

/**
 * The connection to the store broke during an operation. The store applied the operation in full or not at all (G8),
 * and the caller cannot know which.
 */
final class OutcomeUnknown extends \RuntimeException implements ExceptionInterface
{
}
