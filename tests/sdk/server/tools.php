<?php

/** The scenarios' tools on the official PHP SDK: a function that adds them to a server's builder. */

declare(strict_types=1);

use Mcp\Schema\Content\TextContent;
use Mcp\Schema\Elicitation\ElicitationSchema;
use Mcp\Schema\Elicitation\StringSchemaDefinition;
use Mcp\Schema\Result\CallToolResult;
use Mcp\Server\Builder;
use Mcp\Server\RequestContext;

return static fn (Builder $builder): Builder => $builder
    ->setServerInfo('mcp-sdk-example', '0.1.0')
    ->addTool(static function (string $sentinel, int $delay_ms = 0): string {
        usleep($delay_ms * 1000);

        return $sentinel;
    }, 'echo', description: 'Returns what it is given, after a while.')
    ->addTool(static function (
        RequestContext $context,
        string $sentinel,
        float $timeout = 60,
        int $times = 1,
    ): CallToolResult|string {
        $schema = new ElicitationSchema(['answer' => new StringSchemaDefinition('Answer')], ['answer']);
        $answers = [];

        try {
            for ($i = 0; $i < $times; ++$i) {
                $result = $context->getClientGateway()->elicit($sentinel, $schema, (int) $timeout);
                $answers[] = (string) ($result->content['answer'] ?? 'declined');
            }
        } catch (Throwable $e) {
            $timedOut = str_contains($e->getMessage(), 'timed out');
            $text = $timedOut ? "No answer within $timeout s." : $e->getMessage();

            return CallToolResult::error([new TextContent($text)]);
        }

        return implode(' ', $answers);
    }, 'ask', description: 'Asks the user for a word and returns the answer.')
    ->addTool(static function (RequestContext $context, int $n, int $delay_ms = 0): string {
        for ($i = 1; $i <= $n; $i++) {
            usleep($delay_ms * 1000);
            $context->getClientGateway()->progress($i, $n);
        }

        return "counted to $n";
    }, 'count', description: 'Counts, and reports each step as progress.')
    ->addTool(static function (RequestContext $context, string $key, string $value): string {
        $context->getSession()->set("remembered.$key", $value);

        return 'remembered';
    }, 'remember', description: 'Keeps a value in the session.')
    ->addTool(static function (RequestContext $context): string {
        return json_encode(array_diff_key($context->getSession()->all(), ['_mcp' => null]), JSON_THROW_ON_ERROR);
    }, 'recall', description: 'Everything the session has kept, as JSON.')
    ->addResourceTemplate(static fn (string $name): string => $name, 'note://{name}', 'note', mimeType: 'text/plain');
