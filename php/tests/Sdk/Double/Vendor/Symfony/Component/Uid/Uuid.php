<?php

declare(strict_types=1);

namespace Symfony\Component\Uid;

class Uuid
{
    private function __construct(private readonly string $text)
    {
    }

    public static function fromString(string $text): self
    {
        if (\preg_match('/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i', $text) !== 1) {
            throw new \InvalidArgumentException("Invalid UUID: \"$text\".");
        }

        return new self(\strtolower($text));
    }

    public static function v4(): self
    {
        $hex = \bin2hex(\random_bytes(16));
        $hex[12] = '4';
        $hex[16] = 'a';

        return new self((string) \preg_replace('/^(.{8})(.{4})(.{4})(.{4})(.{12})$/', '$1-$2-$3-$4-$5', $hex));
    }

    public function toRfc4122(): string
    {
        return $this->text;
    }

    public function __toString(): string
    {
        return $this->text;
    }
}
