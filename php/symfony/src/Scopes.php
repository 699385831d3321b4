<?php

declare(strict_types=1);

namespace McpState\Symfony;

use McpState\Sdk\Scope\Scope;
use McpState\Sdk\Scope\SequentialWorker;
use McpState\Sdk\Scope\Stdio;
use Symfony\Component\HttpFoundation\RequestStack;

/** Chooses the scope, because symfony/mcp-bundle serves HTTP and the console command `mcp:server` with one service. */
final class Scopes
{
    /**
     * During an HTTP request, returns the scope for one request after another, which fits php-fpm, FrankenPHP and
     * RoadRunner. Otherwise returns the scope for stdio.
     */
    public static function ofEntryPoint(?RequestStack $requests): Scope
    {
        return $requests?->getMainRequest() === null ? new Stdio() : new SequentialWorker();
    }
}
