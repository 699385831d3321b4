<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

use Psr\Log\AbstractLogger;

/**
 * The logger for applications that configure none: it writes warnings and errors to PHP's `error_log`, one line each.
 *
 * @internal
 */
final class ErrorLog extends AbstractLogger
{
    private const QUIET = ['debug', 'info', 'notice'];

    /**
     * @param mixed                   $level
     * @param string|\Stringable      $message
     * @param array<array-key, mixed> $context
     */
    public function log($level, $message, array $context = []): void
    {
        // A host may disable error_log.
        if (!\in_array($level, self::QUIET, true) && \function_exists('error_log')) {
            // Control characters in text from a client must not start a new log line.
            \error_log((string) \preg_replace('/[\x00-\x1f\x7f]/', ' ', (string) $message));
        }
    }
}
