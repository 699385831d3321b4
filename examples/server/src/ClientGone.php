<?php

declare(strict_types=1);

namespace McpState\Example;

/** The client has closed the stream, so the exchange ends. */
final class ClientGone extends \RuntimeException
{
}
