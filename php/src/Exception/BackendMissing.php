<?php

declare(strict_types=1);

namespace McpState\Exception;

/**
 * Nothing on this machine can open a store: the extension is not loaded, or it does not fit this library.
 *
 * The message says what to do.
 */
final class BackendMissing extends \RuntimeException implements ExceptionInterface
{
}
