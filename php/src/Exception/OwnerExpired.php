<?php

declare(strict_types=1);

namespace McpState\Exception;

/**
 * The owner has ended: it was detached, its PHP request ended, or it was silent for too long. Call
 * {@see \McpState\Session::attach()} for a new owner.
 */
final class OwnerExpired extends \RuntimeException implements ExceptionInterface
{
}
