<?php

declare(strict_types=1);

namespace McpState\Ffi;

use FFI\CData;

/**
 * Reusable memory into which one call writes its results: {@see Library::acquire()}. Each property is allocated when a
 * call first needs it.
 *
 * @internal
 */
final class Memory
{
    public ?CData $number = null;
    public ?CData $buffer = null;
    public ?CData $messages = null;
    public ?CData $claim = null;
    public ?CData $delivery = null;
    public ?CData $wait = null;

    /** @param CData $error `mcp_state_error[1]` */
    public function __construct(public readonly CData $error)
    {
    }

    private function __clone()
    {
    }
}
