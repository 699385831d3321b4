<?php

declare(strict_types=1);

namespace McpState;

/**
 * Tells whether a client's response reached its pending request.
 *
 * A response that did not reach a pending request is discarded: the store keeps none of it, and no later request can
 * receive it (G4).
 */
final class Delivery
{
    private function __construct(
        public readonly bool $delivered,
        /** Why the store discarded the response; null if it was delivered. */
        public readonly ?LateReason $reason,
    ) {
    }

    /** Creates the result for a response that reached its pending request. */
    public static function delivered(): self
    {
        static $delivered;
        $delivered ??= new self(true, null);

        return $delivered;
    }

    /** Creates the result for a response that the store discarded. */
    public static function late(LateReason $reason): self
    {
        return new self(false, $reason);
    }
}
