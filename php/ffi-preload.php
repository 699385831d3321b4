<?php

/**
 * A script for `opcache.preload` that lets mcp-state use PHP's FFI in php-fpm under `ffi.enable=preload`, the default.
 *
 *     opcache.preload = /path/to/vendor/mcp-state/mcp-state/ffi-preload.php
 *     opcache.preload_user = www-data
 *     ; either the library itself …
 *     mcp_state.library = /usr/local/lib/libmcp_state.so
 *     ; … or the header that names the library after FFI_LIB, which saves some microseconds per request:
 *     ffi.preload = /path/to/mcp_state.ffi.h
 *
 * PHP then allows FFI only in the classes that this script compiles. The script opens no store. If you have another
 * preload script, `require` this file there.
 */

declare(strict_types=1);

foreach (['Failure', 'RequestEnd', 'Memory', 'Library', 'Handle', 'Session', 'Engine'] as $class) {
    require_once __DIR__ . "/src/Ffi/$class.php";
}
