<?php

declare(strict_types=1);

namespace Mcp;

use Mcp\Server\Builder;
use Mcp\Server\Protocol;

/** Double of the SDK's server, which keeps its protocol and with it the session manager to itself. */
final class Server
{
    public function __construct(private readonly Protocol $protocol, public readonly string $name = '')
    {
    }

    public static function builder(): Builder
    {
        return new Builder();
    }

    // The double's ways to look inside.

    public function protocol(): Protocol
    {
        return $this->protocol;
    }

    public function sessions(): object
    {
        return $this->protocol->sessions();
    }
}
