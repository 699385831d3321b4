<?php

declare(strict_types=1);

namespace Mcp;

use Mcp\Server\Builder;
use Mcp\Server\Protocol;

/** Double of the SDK's server, whose protocol with the session manager is private. */
final class Server
{
    public function __construct(private readonly Protocol $protocol, public readonly string $name = '')
    {
    }

    public static function builder(): Builder
    {
        return new Builder();
    }

    // Only the double has these accessors.

    public function protocol(): Protocol
    {
        return $this->protocol;
    }

    public function sessions(): object
    {
        return $this->protocol->sessions();
    }
}
