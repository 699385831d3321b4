<?php

declare(strict_types=1);

namespace Mcp\Server;

use Mcp\Server\Session\SessionManagerInterface;

/** Double of the SDK's protocol. */
class Protocol
{
    /** @param list<string> $requestHandlers */
    public function __construct(
        private readonly array $requestHandlers,
        private readonly SessionManagerInterface $sessionManager,
    ) {
    }

    public function sessions(): SessionManagerInterface
    {
        return $this->sessionManager;
    }

    /** @return list<string> */
    public function handlers(): array
    {
        return $this->requestHandlers;
    }
}
