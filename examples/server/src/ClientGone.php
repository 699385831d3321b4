<?php

declare(strict_types=1);

namespace McpState\Example;

/** Nobody reads the stream any more: the exchange ends. */
final class ClientGone extends \RuntimeException
{
}
