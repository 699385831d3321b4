<?php

declare(strict_types=1);

namespace McpState\Internal;

use McpState\Exception\BackendMissing;
use McpState\Exception\ExceptionInterface;
use McpState\Ffi;
use McpState\Native;

/**
 * Picks what the library runs on: the extension where it is loaded, else the C library where FFI is allowed. There is
 * exactly one answer in a process, so that never two copies of the engine, each with its own file locks, work side by side.
 *
 * @internal
 */
final class Driver
{
    /** The `Native\API_VERSION` this library is written for. */
    private const API_VERSION = 1;

    /**
     * @throws BackendMissing
     * @throws ExceptionInterface
     */
    public static function open(#[\SensitiveParameter] ?string $dsn): Native\Engine|Ffi\Engine
    {
        $dsn ??= \getenv('MCP_STATE_DSN') ?: null;

        try {
            return \defined('McpState\Native\API_VERSION') ? self::extension($dsn) : self::ffi($dsn);
        } catch (Native\Failure | Ffi\Failure $failure) {
            throw FailureKind::exception($failure);
        }
    }

    private static function extension(#[\SensitiveParameter] ?string $dsn): Native\Engine
    {
        if (Native\API_VERSION !== self::API_VERSION) {
            throw new BackendMissing(self::mismatch(Native\API_VERSION, Native\VERSION));
        }

        return Native\Engine::open($dsn);
    }

    private static function ffi(#[\SensitiveParameter] ?string $dsn): Ffi\Engine
    {
        try {
            return Ffi\Engine::open($dsn);
        } catch (BackendMissing $e) {
            throw new BackendMissing(
                'no store can be opened: the PHP extension mcp_state is not loaded in ' . \PHP_SAPI . ' ('
                . (\php_ini_loaded_file() ?: 'no php.ini') . '); install it and add extension=mcp_state there. FFI cannot '
                . 'take its place: ' . $e->getMessage(),
                0,
                $e,
            );
        }
    }

    private static function mismatch(int $found, string $version): string
    {
        $mend = $found < self::API_VERSION
            ? 'upgrade the extension and reload PHP, or install an older mcp-state/mcp-state'
            : 'upgrade the Composer package mcp-state/mcp-state, or install an older extension';

        return "the extension mcp_state $version has API version $found, but this library needs "
            . self::API_VERSION . "; $mend";
    }
}
