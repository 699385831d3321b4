<?php

declare(strict_types=1);

namespace Psr\Http\Message;

interface ServerRequestInterface extends MessageInterface
{
    public function getMethod(): string;

    public function getAttribute(string $name, $default = null);
}
