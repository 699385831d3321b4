<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

/**
 * The body of a request exceeds the limit of the middleware.
 *
 * @internal
 */
final class BodyTooLong extends \RuntimeException
{
}
