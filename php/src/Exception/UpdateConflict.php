<?php

declare(strict_types=1);

namespace McpState\Exception;

/**
 * Others changed the value each time before {@see \McpState\Session::update()} could store its own.
 *
 * Nothing was stored; trying again later is safe.
 */
final class UpdateConflict extends \RuntimeException implements ExceptionInterface
{
}
