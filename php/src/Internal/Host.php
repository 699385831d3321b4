<?php

declare(strict_types=1);

namespace McpState\Internal;

use McpState\Exception\BackendMissing;

/**
 * The PHP functions that this library needs and that a host may disable with `disable_functions`.
 *
 * Calling a disabled function throws an `Error` in the middle of an operation, and that is no exception of this
 * library. If the host disables any function, opening a store therefore checks this list first.
 *
 * @internal
 */
final class Host
{
    /** The functions that this library calls without a replacement, except in `McpState\Ffi`. */
    public const NEEDED = [
        'array_column', 'array_count_values', 'array_diff_key', 'array_filter', 'array_intersect_key', 'array_is_list',
        'array_key_exists', 'array_keys', 'array_map', 'array_pop', 'array_replace', 'array_search', 'array_slice',
        'array_values', 'class_exists', 'connection_aborted', 'count', 'current', 'debug_backtrace', 'defined', 'explode',
        'flush', 'function_exists', 'get_debug_type', 'getenv', 'hash', 'hrtime', 'implode', 'in_array', 'ini_get', 'intdiv',
        'is_array', 'is_int', 'is_numeric', 'is_object', 'is_scalar', 'is_string', 'json_decode', 'json_encode', 'max',
        'method_exists', 'min', 'ob_flush', 'ob_get_level', 'preg_match', 'preg_replace', 'random_int', 'str_contains',
        'str_starts_with', 'strlen', 'substr', 'time', 'usleep',
    ];

    /** The functions that `McpState\Ffi` calls without a replacement. It runs only if the extension is not loaded. */
    public const NEEDED_BY_FFI = [
        'dirname', 'extension_loaded', 'file_get_contents', 'get_cfg_var', 'get_included_files', 'is_file', 'realpath',
        'register_shutdown_function',
    ];

    /**
     * @param list<string> $needed
     *
     * @throws BackendMissing if a function is disabled; the message names all such functions
     */
    public static function check(array $needed): void
    {
        try {
            $missing = [];

            foreach ($needed as $function) {
                if (!\function_exists($function)) {
                    $missing[] = $function;
                }
            }

            $named = $missing === [] ? '' : \implode(', ', $missing);
        } catch (\Error) {
            $named = 'function_exists or implode';
        }

        if ($named !== '') {
            throw new BackendMissing(
                "no store can be opened: this PHP has no function $named, which mcp-state calls; "
                . 'remove it from disable_functions'
            );
        }
    }
}
