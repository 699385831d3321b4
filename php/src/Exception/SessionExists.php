<?php

declare(strict_types=1);

namespace McpState\Exception;

/** A session with this id already exists. That session is unchanged. */
final class SessionExists extends \RuntimeException implements ExceptionInterface
{
}
