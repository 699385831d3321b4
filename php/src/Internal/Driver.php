<?php

declare(strict_types=1);

namespace McpState\Internal;

use McpState\Exception\BackendMissing;
use McpState\Ffi;
use McpState\Native;

/**
 * Where the extension is not loaded, or does not fit: the C library by FFI, or an exception that says what to install. There is
 * exactly one answer in a process, so that never two copies of the engine, each with its own file locks, work side by side.
 *
 * @internal
 */
final class Driver
{
    /**
     * @param int $needed the extension's `Native\API_VERSION` that would fit
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
                . ((\function_exists('php_ini_loaded_file') ? \php_ini_loaded_file() : '') ?: 'no php.ini') . '); install it and add extension=mcp_state there. FFI cannot '
                . 'take its place: ' . $e->getMessage(),
                0,
                $e,
            );
        }
    }

    private static function mismatch(int $found, string $version, int $needed): string
    {
        $mend = $found < $needed
            ? 'upgrade the extension and reload PHP, or install an older mcp-state/mcp-state'
            : 'upgrade the Composer package mcp-state/mcp-state, or install an older extension';

        return "the extension mcp_state $version has API version $found, but this library needs $needed; $mend";
    }
}
