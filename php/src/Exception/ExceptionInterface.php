<?php

declare(strict_types=1);

namespace McpState\Exception;

/**
 * All exceptions of this library implement this interface, and no others do: `catch (ExceptionInterface)` catches them
 * all.
 */
interface ExceptionInterface extends \Throwable
{
}
