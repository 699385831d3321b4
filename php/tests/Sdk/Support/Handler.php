<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk\Support;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;

/** The request handler behind a middleware. */
final class Handler implements RequestHandlerInterface
{
    /** @param \Closure(ServerRequestInterface): ResponseInterface $do */
    public function __construct(private readonly \Closure $do)
    {
    }

    public static function ok(): self
    {
        return new self(static fn (): ResponseInterface => Psr7::response());
    }

    public function handle(ServerRequestInterface $request): ResponseInterface
    {
        return ($this->do)($request);
    }
}
