<?php

declare(strict_types=1);

namespace McpState\Example;

/** A tool failed: the model sees the message, as a result with `isError`. */
final class ToolError extends \RuntimeException
{
}
