<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

use Psr\Log\LoggerInterface;

/**
 * The settings that all exchanges of a session manager share.
 *
 * @internal
 */
final class Settings
{
    /** @var (\Closure(): mixed)|null runs at least once a second while a read sleeps */
    public ?\Closure $whileWaiting = null;

    /** @var \Closure(int|string): mixed runs when an exchange has begun a client's request itself */
    public \Closure $onRequestBegun;

    /**
     * @param list<string>            $collections keys of attributes that are merged element by element
     * @param \Closure(): WaitingRoom $waitingRoom creates the waiting room of an exchange, which has no place yet
     */
    public function __construct(
        public readonly LoggerInterface $logger,
        public readonly ?int $ttlMs,
        public readonly ?int $leaseMs,
        public readonly bool $mayBlock,
        public readonly bool $isOneStream,
        public readonly array $collections,
        public readonly \Closure $waitingRoom,
    ) {
        $this->onRequestBegun = static fn (): mixed => null;
    }
}
