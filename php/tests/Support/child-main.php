<?php

/** The script that a {@see \McpState\Tests\Support\Child} runs with the code, the DSN, and further arguments. */

declare(strict_types=1);

require __DIR__ . '/../../autoload.php';

function say(string|int $line): void
{
    fwrite(STDOUT, "$line\n");
}

function hear(): string
{
    return rtrim((string) fgets(STDIN), "\n");
}

(static function (string $code, string $dsn, string ...$args): void {
    $store = McpState\Store::open($dsn);
    eval('namespace McpState; ' . $code);
})(...array_slice($argv, 1));
