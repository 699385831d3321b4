<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

use McpState\Exception\ExceptionInterface;
use McpState\Exception\LimitExceeded;
use McpState\Owner;
use McpState\OwnerKind;
use McpState\Store;

/**
 * The place of one exchange in the store's waiting room, which counts the exchanges that wait for their clients, across
 * all sessions and processes: {@see Store::waitingRoom()}.
 *
 * @internal
 */
final class WaitingRoom
{
    /**
     * The interval, in nanoseconds, at which a waiting exchange renews its place, for machines that cannot see this
     * process.
     */
    private const RENEW_NS = 10_000_000_000;

    private ?Owner $place = null;

    private int $renewedAt = 0;

    /**
     * @param \Closure(): Store $store
     * @param int|null          $places the number of places; null: the store's `max_waiting`
     */
    public function __construct(private readonly \Closure $store, private readonly ?int $places)
    {
    }

    /**
     * Takes a place, unless the exchange has one or there is no limit.
     *
     * @throws LimitExceeded if all places are taken
     * @throws ExceptionInterface
     */
    public function enter(): void
    {
        $this->place ??= ($this->store)()->waitingRoom($this->places)?->attach(OwnerKind::Reply);
        $this->renewedAt = \hrtime(true);
    }

    /** Renews the place every ten seconds. */
    public function renew(): void
    {
        if ($this->place !== null && \hrtime(true) - $this->renewedAt > self::RENEW_NS) {
            $this->renewedAt = \hrtime(true);

            try {
                $this->place->renew();
            } catch (ExceptionInterface) {
                // The place has been released or the store is unavailable; the exchange still keeps waiting.
            }
        }
    }

    /** Returns the number of places; null: the store decides. */
    public function places(): ?int
    {
        return $this->places;
    }

    public function leave(): void
    {
        try {
            $this->place?->detach();
        } catch (ExceptionInterface) {
            // The place ends with its lease.
        }

        $this->place = null;
    }
}
