<?php

declare(strict_types=1);

namespace McpState\Internal;

use McpState\Exception\BackendMissing;
use McpState\Ffi;
use McpState\Native;

/**
 * Opens a store through the C library when the extension is not loaded, or throws an exception that says what to
 * install.
 *
 * A process uses either the extension or the C library. Two copies of the engine in one process, each with its own file
 * locks, would not exclude each other.
 *
 * @internal
 */
final class Driver
{
    /**
     * @param int $needed the `Native\API_VERSION` that this library requires
     *
     * @throws BackendMissing
     * @throws Ffi\Failure
     */
    public static function open(#[\SensitiveParameter] ?string $dsn, int $needed): Ffi\Engine
    {
        if (\defined('McpState\Native\API_VERSION')) {
            throw new BackendMissing(self::mismatch(Native\API_VERSION, Native\VERSION, $needed));
        }

        Host::check(Host::NEEDED_BY_FFI);

        try {
            return Ffi\Engine::open($dsn);
        } catch (BackendMissing $e) {
            throw new BackendMissing(
                'no store can be opened: the PHP extension mcp_state is not loaded in ' . \PHP_SAPI . ' ('
                . ((\function_exists('php_ini_loaded_file') ? \php_ini_loaded_file() : '') ?: 'no php.ini')
                . '); install it and add extension=mcp_state there. FFI cannot take its place: ' . $e->getMessage(),
                0,
                $e,
            );
        }
    }

    private static function mismatch(int $found, string $version, int $needed): string
    {
        $remedy = $found < $needed
            ? 'upgrade the extension and reload PHP, or install an older mcp-state/mcp-state'
            : 'upgrade the Composer package mcp-state/mcp-state, or install an older extension';

        return "the extension mcp_state $version has API version $found, but this library needs $needed; $remedy";
    }
}
