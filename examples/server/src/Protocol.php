<?php

declare(strict_types=1);

namespace McpState\Example;

/** The methods of MCP. */
final class Protocol
{
    /** The supported versions, the newest first. */
    public const VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26'];

    public function __construct(private readonly Tools $tools)
    {
    }

    /**
     * Tells whether the reply to the request is an event stream.
     *
     * @param array<string, mixed> $request
     */
    public function streams(array $request): bool
    {
        $name = $request['method'] === 'tools/call' ? $request['params']['name'] ?? null : null;

        return is_string($name) && $this->tools->find($name)?->streams === true;
    }

    /**
     * @param array<string, mixed> $request
     * @return array<string, mixed>|object the result
     * @throws RpcError
     */
    public function serve(array $request, Call $call): array|object
    {
        $params = $request['params'] ?? [];

        return match ($request['method']) {
            'initialize' => $this->initialize($params, $call),
            'ping' => new \stdClass(),
            'tools/list' => ['tools' => $this->tools->describe()],
            'tools/call' => $this->call($params, $call),
            'resources/list' => ['resources' => []],
            'resources/subscribe' => $this->subscribe($params, $call, static fn (array $uris, string $uri)
                => array_values(array_unique([...$uris, $uri]))),
            'resources/unsubscribe' => $this->subscribe($params, $call, static fn (array $uris, string $uri)
                => array_values(array_diff($uris, [$uri]))),
            default => throw new RpcError(RpcError::METHOD_NOT_FOUND, "There is no method \"{$request['method']}\"."),
        };
    }

    /**
     * @param array<string, mixed> $params
     * @return array<string, mixed>
     */
    private function initialize(array $params, Call $call): array
    {
        $wanted = $params['protocolVersion'] ?? null;
        $version = in_array($wanted, self::VERSIONS, true) ? $wanted : self::VERSIONS[0];
        $call->session->set([
            'protocol_version' => $version,
            'client_info' => $params['clientInfo'] ?? [],
            'client_capabilities' => $params['capabilities'] ?? [],
        ]);

        return [
            'protocolVersion' => $version,
            'capabilities' => ['tools' => new \stdClass(), 'resources' => ['subscribe' => true]],
            'serverInfo' => ['name' => 'mcp-state-example', 'version' => '0.1.0'],
        ];
    }

    /**
     * @param array<string, mixed> $params
     * @return array<string, mixed>
     */
    private function call(array $params, Call $call): array
    {
        $name = $params['name'] ?? null;
        $arguments = $params['arguments'] ?? [];
        $tool = is_string($name) ? $this->tools->find($name) : null;
        if ($tool === null || !is_array($arguments)) {
            throw new RpcError(RpcError::INVALID_PARAMS, 'There is no such tool: ' . Json::encode($name));
        }

        return $tool->run($arguments, $call);
    }

    /**
     * @param array<string, mixed> $params
     * @param \Closure(list<string>, string): list<string> $change
     */
    private function subscribe(array $params, Call $call, \Closure $change): object
    {
        $uri = $params['uri'] ?? null;
        if (!is_string($uri)) {
            throw new RpcError(RpcError::INVALID_PARAMS, 'A subscription needs a "uri".');
        }
        $call->session->update('subscriptions', static fn (?array $uris) => $change($uris ?? [], $uri));

        return new \stdClass();
    }
}
