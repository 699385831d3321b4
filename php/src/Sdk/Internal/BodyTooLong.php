<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

/**
 * A request's body is longer than what the middleware reads.
 *
 * @internal
 */
final class BodyTooLong extends \RuntimeException
{
}
