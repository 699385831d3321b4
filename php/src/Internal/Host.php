<?php

declare(strict_types=1);

namespace McpState\Internal;

use McpState\Exception\BackendMissing;

/**
 * What a host may take from PHP by `disable_functions`: the functions that this library calls, and what stands in for those it can
 * do without.
 *
 * A call to a disabled function is an `Error` without a type of ours, in the middle of an operation. So a host that disables any
 * function has the list looked through when a store is opened, before anything is done.
 *
 * @internal
 */
final class Host
{
    /** The functions that this library calls and has no replacement for, but those of `McpState\Ffi`. */
    public const NEEDED = [
        'array_column', 'array_count_values', 'array_diff_key', 'array_filter', 'array_intersect_key', 'array_is_list',
        'array_key_exists', 'array_keys', 'array_map', 'array_pop', 'array_replace', 'array_search', 'array_slice',
        'array_values', 'class_exists', 'connection_aborted', 'count', 'current', 'debug_backtrace', 'defined', 'explode',
        'flush', 'function_exists', 'get_debug_type', 'getenv', 'hash', 'hrtime', 'implode', 'in_array', 'ini_get', 'intdiv',
        'is_array', 'is_int', 'is_numeric', 'is_object', 'is_scalar', 'is_string', 'json_decode', 'json_encode', 'max',
        'method_exists', 'min', 'ob_flush', 'ob_get_level', 'preg_match', 'preg_replace', 'random_int', 'str_contains',
        'str_starts_with', 'strlen', 'substr', 'time', 'usleep',
    ];

    /** The same of `McpState\Ffi`, on which the library runs where the extension is not loaded. */
    public const NEEDED_BY_FFI = [
        'dirname', 'extension_loaded', 'file_get_contents', 'get_cfg_var', 'get_included_files', 'is_file', 'realpath',
        'register_shutdown_function',
    ];

    /**
     * @param list<string> $needed
     *
     * @throws BackendMissing that names the functions that are missing
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
                "no store can be opened: this PHP has no function $named, which mcp-state calls; take it out of disable_functions"
            );
        }
    }
}
