<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

use McpState\Exception\ExceptionInterface;
use McpState\Exception\LimitExceeded;
use McpState\Owner;
use McpState\OwnerKind;
use McpState\Store;

/**
 * One exchange's place among those of the store that wait for their clients, in all sessions and processes.
 *
 * The store counts them, where their number is limited: {@see Store::waitingRoom()}.
 *
 * @internal
 */
final class WaitingRoom
{
    /** How often, in nanoseconds, a place is renewed while its exchange waits: for machines that cannot see this process. */
    private const RENEW_NS = 10_000_000_000;

    private ?Owner $place = null;

    private int $renewedAt = 0;

    /**
     * @param \Closure(): Store $store
     * @param int|null          $places how many may wait; null: the store's `max_waiting`
     */
    public function __construct(private readonly \Closure $store, private readonly ?int $places)
    {
    }

    /**
     * Takes a place, unless this exchange has one or nobody counts.
     *
     * @throws LimitExceeded when all are taken
     * @throws ExceptionInterface
     */
    public function enter(): void
    {
        $this->place ??= ($this->store)()->waitingRoom($this->places)?->attach(OwnerKind::Reply);
        $this->renewedAt = \hrtime(true);
    }

    /** Says now and then that the exchange waits still. */
    public function renew(): void
    {
        if ($this->place !== null && \hrtime(true) - $this->renewedAt > self::RENEW_NS) {
            $this->renewedAt = \hrtime(true);

            try {
                $this->place->renew();
            } catch (ExceptionInterface) {
                // The place is another's by now, or the store is away: the exchange waits on all the same.
            }
        }
    }

    /** How many may wait; null: as many as the store says. */
    public function places(): ?int
    {
        return $this->places;
    }

    public function leave(): void
    {
        try {
            $this->place?->detach();
        } catch (ExceptionInterface) {
            // It is gone then.
        }

        $this->place = null;
    }
}
