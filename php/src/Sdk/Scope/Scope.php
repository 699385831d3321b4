<?php

declare(strict_types=1);

namespace McpState\Sdk\Scope;

/**
 * Tells which exchange the SDK serves when it calls the session manager.
 *
 * The SDK reports the end of no exchange, and the beginning only through `gc()`, its first call in each. The
 * application therefore states how its runtime serves exchanges: one per process, one after another, or interleaved.
 */
interface Scope
{
    /**
     * Returns the exchange of the caller. Equal values are the same exchange. An exchange that is an object ends with
     * it.
     */
    public function current(): int|string|object;

    /** Tells whether the SDK's first call in an exchange ends the previous exchange of this scope. */
    public function beginsAnew(): bool;

    /** Tells whether a read may sleep until an event, because the process runs no other code meanwhile. */
    public function mayBlock(): bool;

    /** Tells whether all queued messages go to the client's only stream, as on stdio. */
    public function isOneStream(): bool;
}
