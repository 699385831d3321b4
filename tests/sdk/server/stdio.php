<?php

/** The tools `ask` and `echo` on the official PHP SDK (MCP_SDK_AUTOLOAD) over stdin and stdout, with our sessions. */

declare(strict_types=1);

use Mcp\Schema\Elicitation\ElicitationSchema;
use Mcp\Schema\Elicitation\StringSchemaDefinition;
use Mcp\Server\RequestContext;
use Mcp\Server\Transport\StdioTransport;
use McpState\Sdk\Scope\Stdio;
use McpState\Sdk\SessionManager;

require __DIR__ . '/../../../php/autoload.php';
require getenv('MCP_SDK_AUTOLOAD') ?: throw new RuntimeException('MCP_SDK_AUTOLOAD names no autoloader.');

(class_exists('Mcp\Server\Server') ? 'Mcp\Server\Server' : 'Mcp\Server')::builder()
    ->setServerInfo('mcp-sdk-example', '0.1.0')
    ->setSession(sessionManager: SessionManager::open('memory://', scope: new Stdio()))
    ->addTool(static function (RequestContext $context, string $sentinel): string {
        $context->getSession()->set('asked', $sentinel);
        $schema = new ElicitationSchema(['answer' => new StringSchemaDefinition('Answer')], ['answer']);
        $context->getClientGateway()->progress(1, 2);
        $result = $context->getClientGateway()->elicit($sentinel, $schema, 60);
        $context->getClientGateway()->progress(2, 2);

        return (string) $result->content['answer'];
    }, 'ask')
    ->addTool(static fn (string $sentinel): string => $sentinel, 'echo')
    ->build()
    ->run(new StdioTransport());
