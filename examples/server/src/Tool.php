<?php

declare(strict_types=1);

namespace McpState\Example;

/** A tool: its description, and a closure that runs it. */
final class Tool
{
    /**
     * @param array<string, array<string, mixed>>          $arguments JSON Schemas by name; an argument without
     *                                                                `default` is required
     * @param \Closure(array<string, mixed>, Call): string $run       receives every argument and returns the text of
     *                                                                the result
     * @param bool                                         $streams   whether the tool sends messages to the client
     *                                                                before its result
     */
    public function __construct(
        public readonly string $name,
        public readonly string $description,
        private readonly array $arguments,
        private readonly \Closure $run,
        public readonly bool $streams = false,
    ) {
    }

    /** @return array<string, mixed> the entry in `tools/list` */
    public function describe(): array
    {
        return [
            'name' => $this->name,
            'description' => $this->description,
            'inputSchema' => [
                'type' => 'object',
                'properties' => (object) $this->arguments,
                'required' => array_keys(array_filter($this->arguments, static fn ($schema) => !isset($schema['default']))),
            ],
        ];
    }

    /**
     * @param array<string, mixed> $arguments
     * @return array<string, mixed> the result of `tools/call`
     */
    public function run(array $arguments, Call $call): array
    {
        foreach ($this->arguments as $name => $schema) {
            $arguments[$name] ??= $schema['default']
                ?? throw new RpcError(RpcError::INVALID_PARAMS, "The tool \"$this->name\" needs the argument \"$name\".");
            $fits = match ($schema['type']) {
                'string' => is_string($arguments[$name]),
                'integer' => is_int($arguments[$name]),
                'number' => is_int($arguments[$name]) || is_float($arguments[$name]),
                'boolean' => is_bool($arguments[$name]),
                default => true,
            };
            if (!$fits) {
                throw new RpcError(RpcError::INVALID_PARAMS, "The argument \"$name\" must be of type {$schema['type']}.");
            }
        }
        try {
            return ['content' => [['type' => 'text', 'text' => ($this->run)($arguments, $call)]], 'isError' => false];
        } catch (ToolError $e) {
            return ['content' => [['type' => 'text', 'text' => $e->getMessage()]], 'isError' => true];
        }
    }
}
