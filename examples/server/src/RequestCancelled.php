<?php

declare(strict_types=1);

namespace McpState\Example;

/** The client cancelled the request: it gets no response. */
final class RequestCancelled extends \RuntimeException
{
}
