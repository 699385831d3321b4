<?php

declare(strict_types=1);

namespace Psr\Http\Message;

/** As much of PSR-7 as the middleware uses. */
interface MessageInterface
{
    public function getHeaderLine(string $name): string;

    public function withHeader(string $name, $value): MessageInterface;

    public function getBody(): StreamInterface;

    public function withBody(StreamInterface $body): MessageInterface;
}
