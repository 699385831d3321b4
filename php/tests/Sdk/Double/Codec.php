<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk\Double;

/** The SDK puts such an object into the session of each request. The key is public here, to be found if it ever leaks. */
final class Codec
{
    public function __construct(public readonly string $key)
    {
    }
}
