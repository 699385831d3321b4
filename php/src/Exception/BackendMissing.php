<?php

declare(strict_types=1);

namespace McpState\Exception;

/**
 * Nothing on this machine can open a store: neither the extension nor the C library by FFI is there, or what is there does not
 * fit this library. The message says what to install.
 */
final class BackendMissing extends \RuntimeException implements ExceptionInterface
{
}
