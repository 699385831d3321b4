<?php

declare(strict_types=1);

namespace McpState\Sdk\Scope;

/** The manager serves a single exchange: php-fpm, mod_php, CGI, `php -S`. */
final class OneExchange implements Scope
{
    public function current(): int
    {
        return 0;
    }

    public function beginsAnew(): bool
    {
        return false;
    }

    public function mayBlock(): bool
    {
        return true;
    }

    public function isOneStream(): bool
    {
        return false;
    }
}
