<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

use McpState\Exception\ExceptionInterface;
use McpState\Exception\SessionExists;
use McpState\Owner;
use McpState\OwnerKind;
use McpState\Session;
use McpState\Store;

/**
 * How many exchanges of a store wait for a client at once, in all its sessions and processes.
 *
 * Each that waits is an owner of one session that is made for this: so it is counted until it leaves or its process dies.
 * It enters first and counts then, so that two never take the last place.
 *
 * @internal
 */
final class WaitingRoom
{
    private const ID = 'mcp-state.waiting';

    /** @param \Closure(): Store $store */
    public function __construct(private readonly \Closure $store, private readonly int $places)
    {
    }

    /**
     * The place taken, to be detached when the wait is over; null when there is none.
     *
     * @throws ExceptionInterface
     */
    public function enter(): ?Owner
    {
        $room = $this->session();
        $place = $room->attach(OwnerKind::Reply);

        if ($room->stats()['owners'] > $this->places) {
            $place->detach();

            return null;
        }

        return $place;
    }

    public function places(): int
    {
        return $this->places;
    }

    private function session(): Session
    {
        $store = ($this->store)();

        try {
            return $store->openSession(self::ID) ?? $store->createSession(self::ID);
        } catch (SessionExists) {
            return $store->openSession(self::ID) ?? $store->createSession(self::ID);
        }
    }
}
