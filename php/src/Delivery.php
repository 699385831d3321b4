<?php

declare(strict_types=1);

namespace McpState;

/**
 * Whether a client's answer reached the request it answers.
 *
 * An answer that did not is discarded: nothing of it is stored, and no later request can ever get it.
 */
final class Delivery
{
    private function __construct(
        public readonly bool $delivered,
        /** Why it was discarded; null when it was delivered. */
        public readonly ?LateReason $reason,
    ) {
    }

    /** The answer reached its request. */
    public static function delivered(): self
    {
        static $delivered;
        $delivered ??= new self(true, null);

        return $delivered;
    }

    /** The answer was discarded. */
    public static function late(LateReason $reason): self
    {
        return new self(false, $reason);
    }
}
