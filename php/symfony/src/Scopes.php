<?php

declare(strict_types=1);

namespace McpState\Symfony;

use McpState\Sdk\Scope\Scope;
use McpState\Sdk\Scope\SequentialWorker;
use McpState\Sdk\Scope\Stdio;
use Symfony\Component\HttpFoundation\RequestStack;

/** symfony/mcp-bundle serves HTTP and the console command `mcp:server` with one service. */
final class Scopes
{
    /**
     * While an HTTP request is handled: one request after another, which is right in php-fpm as well as in FrankenPHP and
     * RoadRunner. Otherwise: stdio.
     */
    public static function ofEntryPoint(?RequestStack $requests): Scope
    {
        return $requests?->getMainRequest() === null ? new Stdio() : new SequentialWorker();
    }
}
