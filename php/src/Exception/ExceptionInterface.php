<?php

declare(strict_types=1);

namespace McpState\Exception;

/** Every exception of this library: `catch (ExceptionInterface)` catches them all and nothing else. */
interface ExceptionInterface extends \Throwable
{
}
