<?php

declare(strict_types=1);

namespace McpState\Example;

/** The client cancelled the request, which therefore receives no response. */
final class RequestCancelled extends \RuntimeException
{
}
