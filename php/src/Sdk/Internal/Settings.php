<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

use Psr\Log\LoggerInterface;

/**
 * What all exchanges of a session manager have in common.
 *
 * @internal
 */
final class Settings
{
    /** @var (\Closure(): mixed)|null runs at least once a second while a read blocks */
    public ?\Closure $whileWaiting = null;

    /** @var \Closure(int|string): mixed runs when an exchange says itself that a client's request is in flight */
    public \Closure $takeOver;

    /**
     * @param list<string>             $collections keys of attributes that are merged element by element
     * @param \Closure(): WaitingRoom $waitingRoom a place in it for an exchange, not taken yet
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
        $this->takeOver = static fn (): mixed => null;
    }
}
