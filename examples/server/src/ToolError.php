<?php

declare(strict_types=1);

namespace McpState\Example;

/** A tool failed. The model sees the message as a result with `isError`. */
final class ToolError extends \RuntimeException
{
}
