<?php

declare(strict_types=1);

namespace McpState\Bench;

/** The initial content of the sessions. */
final class Content
{
    public static function id(int $session): string
    {
        return sprintf('00000000-0000-4000-8000-%012d', $session);
    }

    /** @return array<string, string> attributes by dotted key, of $bytes bytes in total, and the name of the client */
    public static function attributes(int $bytes): array
    {
        $attributes = ['client.name' => 'bench'];
        for ($part = 0; $part < 10; ++$part) {
            $attributes["content.part$part"] = str_repeat('x', intdiv($bytes, 10));
        }

        return $attributes;
    }
}
