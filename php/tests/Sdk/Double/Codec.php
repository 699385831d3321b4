<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk\Double;

/** The SDK stores such an object in the session of each request. Its key is public here, so that a test finds leaks. */
final class Codec
{
    public function __construct(public readonly string $key)
    {
    }
}
