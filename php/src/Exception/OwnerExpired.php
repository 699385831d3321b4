<?php

declare(strict_types=1);

namespace McpState\Exception;

/** The owner has ended: detached, its PHP request over, or silent for too long. Attach again to go on. */
final class OwnerExpired extends \RuntimeException implements ExceptionInterface
{
}
