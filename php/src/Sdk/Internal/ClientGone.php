<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

/**
 * The client has closed the stream, so no more output can reach it.
 *
 * @internal
 */
final class ClientGone extends \RuntimeException
{
}
