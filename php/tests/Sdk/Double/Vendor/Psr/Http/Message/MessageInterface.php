<?php

declare(strict_types=1);

namespace Psr\Http\Message;

/** The part of PSR-7 that the middleware uses. */
interface MessageInterface
{
    public function getHeaderLine(string $name): string;

    public function withHeader(string $name, $value): MessageInterface;

    public function getBody(): StreamInterface;

    public function withBody(StreamInterface $body): MessageInterface;
}
