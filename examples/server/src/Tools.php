<?php

declare(strict_types=1);

namespace McpState\Example;

/**
 * The tools of the example.
 */
final class Tools
{
    /** @var array<string, Tool> */
    private array $tools = [];

    public function __construct()
    {
        $this->add(new Tool(
            'echo',
            'Returns what it is given, after a while.',
            ['sentinel' => ['type' => 'string'], 'delay_ms' => ['type' => 'integer', 'minimum' => 0, 'default' => 0]],
            static function (array $arguments): string {
                usleep($arguments['delay_ms'] * 1000);

                return $arguments['sentinel'];
            },
        ));
        $this->add(new Tool(
            'ask',
            'Asks the user for a word and returns the answer.',
            [
                'sentinel' => ['type' => 'string', 'description' => 'The word to ask for'],
                'timeout' => ['type' => 'number', 'description' => 'Seconds', 'exclusiveMinimum' => 0, 'default' => 60],
            ],
            static function (array $arguments, Call $call): string {
                $form = [
                    'type' => 'object',
                    'properties' => ['answer' => ['type' => 'string']],
                    'required' => ['answer'],
                ];
                $content = $call->elicit($arguments['sentinel'], $form, (int) ($arguments['timeout'] * 1000));

                return $content === null ? 'declined' : (string) ($content['answer'] ?? '');
            },
            streams: true,
        ));
        $this->add(new Tool(
            'count',
            'Counts, and reports each step as progress.',
            [
                'n' => ['type' => 'integer', 'minimum' => 0],
                'delay_ms' => ['type' => 'integer', 'description' => 'Between two steps', 'minimum' => 0, 'default' => 0],
            ],
            static function (array $arguments, Call $call): string {
                for ($i = 1; $i <= $arguments['n']; $i++) {
                    usleep($arguments['delay_ms'] * 1000);
                    $call->progress($i, $arguments['n']);
                }

                return "counted to {$arguments['n']}";
            },
            streams: true,
        ));
        $this->add(new Tool(
            'remember',
            'Keeps a value in the session.',
            ['key' => ['type' => 'string'], 'value' => ['type' => 'string']],
            static function (array $arguments, Call $call): string {
                $call->session->set(["remembered.{$arguments['key']}" => $arguments['value']]);

                return 'remembered';
            },
        ));
        $this->add(new Tool(
            'recall',
            'Everything the session has kept, as JSON.',
            [],
            static fn (array $arguments, Call $call): string => Json::encode((object) $call->session->all()),
        ));
        $this->add(new Tool(
            'announce',
            'Says that a resource has changed, on one open stream of the session, if it is subscribed.',
            ['uri' => ['type' => 'string']],
            static function (array $arguments, Call $call): string {
                if (!in_array($arguments['uri'], $call->session->get('subscriptions') ?? [], true)) {
                    return 'not subscribed';
                }
                $call->session->broadcast(Json::notification('notifications/resources/updated', $arguments));

                return 'announced';
            },
        ));
    }

    public function add(Tool $tool): void
    {
        $this->tools[$tool->name] = $tool;
    }

    public function find(string $name): ?Tool
    {
        return $this->tools[$name] ?? null;
    }

    /** @return list<array<string, mixed>> */
    public function describe(): array
    {
        return array_map(static fn (Tool $tool) => $tool->describe(), array_values($this->tools));
    }
}
