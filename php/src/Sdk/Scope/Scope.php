<?php

declare(strict_types=1);

namespace McpState\Sdk\Scope;

/**
 * Which exchange the SDK is serving when it calls the session manager.
 *
 * The SDK never says where an exchange ends, and only `gc()`, its first call in each, hints at where one begins. How a
 * runtime serves exchanges (one in a process, one after another, interleaved) is therefore the application's to say.
 */
interface Scope
{
    /** The exchange of the caller: equal values are one exchange, which ends with an object that is given here. */
    public function current(): int|string|object;

    /** Whether the SDK's first call of each exchange ends what this scope served before. */
    public function beginsAnew(): bool;

    /** Whether a read may sleep until something happens: whether nothing else runs in this process meanwhile. */
    public function mayBlock(): bool;

    /** Whether all that is read from the queue goes to the client's one stream, as on stdio. */
    public function isOneStream(): bool;
}
