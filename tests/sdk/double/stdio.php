<?php

/** The scenarios' tools on the double of the SDK (MCP_DOUBLE_GENERATION) over stdin and stdout, with our sessions. */

declare(strict_types=1);

use McpState\Sdk\Scope\Stdio;
use McpState\Sdk\SessionManager;
use McpState\Tests\Sdk\Double\Server08;
use McpState\Tests\Sdk\Double\Server09;
use McpState\Tests\Sdk\Double\Tools;

require __DIR__ . '/autoload.php';

$class = getenv('MCP_DOUBLE_GENERATION') === '08' ? Server08::class : Server09::class;
(new $class(SessionManager::open('memory://', scope: new Stdio()), Tools::all()))->stdio(STDIN, STDOUT);
