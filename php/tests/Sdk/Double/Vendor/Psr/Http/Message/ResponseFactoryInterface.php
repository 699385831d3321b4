<?php

declare(strict_types=1);

namespace Psr\Http\Message;

interface ResponseFactoryInterface
{
    public function createResponse(int $code = 200, string $reasonPhrase = ''): ResponseInterface;
}
