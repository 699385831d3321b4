<?php

/**
 * The tools of this example on the official PHP SDK (`mcp/sdk`) with the SDK's file store, for comparison. The
 * scenarios and the demo use it if MCP_SDK_AUTOLOAD names the autoloader of an installation.
 */

declare(strict_types=1);

use Http\Discovery\Psr17FactoryDiscovery;
use Mcp\Schema\Content\TextContent;
use Mcp\Schema\Elicitation\ElicitationSchema;
use Mcp\Schema\Elicitation\StringSchemaDefinition;
use Mcp\Schema\Result\CallToolResult;
use Mcp\Server\RequestContext;
use Mcp\Server\Session\FileSessionStore;
use Mcp\Server\Transport\StreamableHttpTransport;

require getenv('MCP_SDK_AUTOLOAD') ?: throw new RuntimeException('MCP_SDK_AUTOLOAD names no autoloader.');

/** Since 0.10 the class is Mcp\Server\Server. */
$server = class_exists('Mcp\Server\Server') ? 'Mcp\Server\Server' : 'Mcp\Server';

$server = $server::builder()
    ->setServerInfo('mcp-sdk-example', '0.1.0')
    ->setSession(new FileSessionStore(getenv('MCP_STATE_BLOBS') ?: sys_get_temp_dir() . '/mcp-sdk-sessions'))
    ->addTool(static function (string $sentinel, int $delay_ms = 0): string {
        usleep($delay_ms * 1000);

        return $sentinel;
    }, 'echo', description: 'Returns what it is given, after a while.')
    ->addTool(static function (RequestContext $context, string $sentinel, float $timeout = 60): CallToolResult|string {
        $schema = new ElicitationSchema(['answer' => new StringSchemaDefinition('Answer')], ['answer']);
        try {
            $result = $context->getClientGateway()->elicit($sentinel, $schema, (int) $timeout);
        } catch (Throwable $e) {
            $timedOut = str_contains($e->getMessage(), 'timed out');
            $text = $timedOut ? "No answer within $timeout s." : $e->getMessage();

            return CallToolResult::error([new TextContent($text)]);
        }

        return (string) ($result->content['answer'] ?? 'declined');
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
    ->build();

$body = Psr17FactoryDiscovery::findStreamFactory()->createStream((string) file_get_contents('php://input'));
$body->rewind();
$url = 'http://' . $_SERVER['HTTP_HOST'] . $_SERVER['REQUEST_URI'];
$request = Psr17FactoryDiscovery::findServerRequestFactory()
    ->createServerRequest($_SERVER['REQUEST_METHOD'], $url, $_SERVER)
    ->withBody($body);
foreach (getallheaders() as $name => $value) {
    $request = $request->withHeader($name, $value);
}

header('X-Worker-Pid: ' . getmypid());
$response = $server->run(new StreamableHttpTransport($request));
http_response_code($response->getStatusCode());
foreach ($response->getHeaders() as $name => $values) {
    foreach ($values as $value) {
        header("$name: $value", false);
    }
}
echo $response->getBody();
