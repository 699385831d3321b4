<?php

declare(strict_types=1);

namespace McpState\Exception;

/** A pending request of this session has this id already; it was left as it is. */
final class DuplicateRequestId extends \RuntimeException implements ExceptionInterface
{
}
