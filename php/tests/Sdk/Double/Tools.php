<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk\Double;

/** The scenarios' tools on the double. */
final class Tools
{
    /** @return array<string, \Closure> */
    public static function all(): array
    {
        return [
            'echo' => static function (Context $context, string $sentinel, int $delay_ms = 0): string {
                \usleep(1000 * $delay_ms);

                return $sentinel;
            },
            'ask' => static function (Context $context, string $sentinel, float $timeout = 60, int $times = 1): string {
                $answers = [];

                try {
                    for ($i = 0; $i < $times; ++$i) {
                        $answers[] = $context->elicit($sentinel, (int) $timeout);
                    }
                } catch (\RuntimeException $e) {
                    $isTimeout = \str_contains($e->getMessage(), 'timed out');

                    throw $isTimeout ? new \RuntimeException("No answer within $timeout s.") : $e;
                }

                return \implode(' ', $answers);
            },
            'ask_or_go_on' => static function (Context $context, string $sentinel, float $timeout = 60): string {
                try {
                    $answer = $context->elicit($sentinel, (int) $timeout);
                } catch (\RuntimeException) {
                    $answer = 'no answer';
                }

                $context->progress(1, 1);

                return "$sentinel: $answer";
            },
            'count' => static function (Context $context, int $n, int $delay_ms = 0): string {
                for ($i = 1; $i <= $n; ++$i) {
                    \usleep(1000 * $delay_ms);
                    $context->progress($i, $n);
                }

                return "counted to $n";
            },
            'remember' => static function (Context $context, string $key, string $value): string {
                $context->session->set("remembered.$key", $value);

                return 'remembered';
            },
            'recall' => static fn (Context $context): string
                => \json_encode(\array_diff_key($context->session->all(), ['_mcp' => 1]), \JSON_THROW_ON_ERROR),
        ];
    }
}
