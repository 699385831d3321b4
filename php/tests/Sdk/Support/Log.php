<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk\Support;

use Psr\Log\AbstractLogger;

/** A logger that keeps its lines. */
final class Log extends AbstractLogger
{
    /** @var list<string> "level message" */
    public array $lines = [];

    public function log($level, $message, array $context = []): void
    {
        $this->lines[] = "$level $message";
    }

    public function has(string $part): bool
    {
        return \str_contains(\implode("\n", $this->lines), $part);
    }
}
