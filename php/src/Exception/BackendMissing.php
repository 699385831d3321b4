<?php

declare(strict_types=1);

namespace McpState\Exception;

/**
 * This PHP cannot open any store: it has neither the extension nor, through FFI, the C library in a version that fits
 * this Composer package. The message says what to install.
 */
final class BackendMissing extends \RuntimeException implements ExceptionInterface
{
}
