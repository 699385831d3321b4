<?php

declare(strict_types=1);

namespace McpState\Exception;

/** The session already has a pending request with this id. That request is unchanged. */
final class DuplicateRequestId extends \RuntimeException implements ExceptionInterface
{
}
