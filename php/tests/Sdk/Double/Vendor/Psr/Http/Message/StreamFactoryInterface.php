<?php

declare(strict_types=1);

namespace Psr\Http\Message;

interface StreamFactoryInterface
{
    public function createStream(string $content = ''): StreamInterface;
}
