<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

/**
 * The client has closed the stream: nobody reads what would still be written.
 *
 * @internal
 */
final class ClientGone extends \RuntimeException
{
}
