<?php

declare(strict_types=1);

namespace Mcp\Server\Transport\Http;

/** Double of logiscape/mcp-sdk-php's interface, with the same methods. */
interface SessionStoreInterface
{
    public function load(string $sessionId): ?HttpSession;

    public function save(HttpSession $session): void;

    public function delete(string $sessionId): void;
}
