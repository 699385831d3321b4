<?php

/**
 * For `opcache.preload`: lets mcp-state use PHP's FFI under `ffi.enable=preload`, the default, in php-fpm.
 *
 *     opcache.preload = /path/to/vendor/mcp-state/mcp-state/ffi-preload.php
 *     opcache.preload_user = www-data
 *     ; either the library itself …
 *     mcp_state.library = /usr/local/lib/libmcp_state.so
 *     ; … or, sparing each request some microseconds, the header that names it after FFI_LIB:
 *     ffi.preload = /path/to/mcp_state.ffi.h
 *
 * PHP then allows FFI to the classes that are compiled here, and to nothing else. No store is opened. With a preload script of
 * your own, `require` this file in it.
 */

declare(strict_types=1);

foreach (['Failure', 'RequestEnd', 'Memory', 'Library', 'Handle', 'Session', 'Engine'] as $class) {
    require_once __DIR__ . "/src/Ffi/$class.php";
}
