<?php

declare(strict_types=1);

namespace McpState\Exception;

/**
 * Other processes changed the value before each attempt of {@see \McpState\Session::update()} to store its own.
 *
 * The call stored nothing. Calling it again later is safe.
 */
final class UpdateConflict extends \RuntimeException implements ExceptionInterface
{
}
