<?php

declare(strict_types=1);

namespace McpState\Ffi;

use FFI\CData;

/**
 * Where one call writes what it gives, to be used again by the next: {@see Library::memory()}. What is null was not needed so far.
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
