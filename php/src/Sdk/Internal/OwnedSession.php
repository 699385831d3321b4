<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

use McpState\Exception\ExceptionInterface;
use McpState\Exception\OwnerExpired;
use McpState\Exception\SessionNotFound;
use McpState\Owner;
use McpState\OwnerKind;
use McpState\Session;
use Psr\Log\LoggerInterface;

/**
 * A session in the store, and the owner that one exchange has of it.
 *
 * The owner is attached when something needs it, so that a plain call writes nothing. An owner that the store has
 * released is replaced by the next operation; what it had asked is lost with it.
 *
 * @internal
 */
final class OwnedSession
{
    private ?Owner $owner = null;

    /** An owner that only says that the session is in use; a stream's takes its place. */
    private bool $isReply = false;

    private bool $hasEnded = false;

    public function __construct(
        public readonly string $id,
        private ?Session $session,
        private readonly Settings $settings,
    ) {
    }

    /** The session in the store; null when it is gone. */
    public function session(): ?Session
    {
        return $this->session;
    }

    /**
     * The owner of a stream, attached when it is not; null when the session is gone.
     *
     * @throws ExceptionInterface
     */
    public function owner(): ?Owner
    {
        if ($this->isReply) {
            $this->owner?->detach();
            $this->owner = null;
        }

        return $this->owner ?? $this->attach(OwnerKind::Stream);
    }

    /**
     * Attaches an owner that only says that the session is in use, unless there is one. It tells a session that is used
     * from one that a flood of `initialize` left.
     *
     * @throws ExceptionInterface
     */
    public function use(): void
    {
        if ($this->owner === null && !$this->hasEnded) {
            $this->attach(OwnerKind::Reply);
        }
    }

    /**
     * Does something as the owner; null when that failed.
     *
     * @template T
     *
     * @param \Closure(Owner): T $do
     *
     * @return T|null
     */
    public function asOwner(string $otherwise, \Closure $do): mixed
    {
        try {
            $owner = $this->owner();

            return $owner === null ? null : $do($owner);
        } catch (ExceptionInterface $e) {
            $this->failed($otherwise, $e);
        }

        return null;
    }

    /** Whether $owner is the one that this exchange has now. */
    public function isOwner(?Owner $owner): bool
    {
        return $owner !== null && $owner === $this->owner;
    }

    /** The store has released the owner. */
    public function release(): void
    {
        $this->owner = null;
    }

    /** The session is gone. */
    public function lose(): void
    {
        $this->session = null;
        $this->owner = null;
    }

    /** Ends the owner for good. */
    public function end(): void
    {
        try {
            $this->owner?->detach();
        } catch (ExceptionInterface $e) {
            $this->failed('an owner could not be detached', $e);
        }

        $this->owner = null;
        $this->hasEnded = true;
    }

    /** Notes a failure: what it says of the session and its owner, and a line in the log. */
    public function failed(string $what, ExceptionInterface $e): void
    {
        if ($e instanceof SessionNotFound) {
            $this->lose();

            return;
        }

        if ($e instanceof OwnerExpired) {
            $this->release();
        }

        $this->logger()->error("mcp-state: $what: {$e->getMessage()}", ['exception' => $e]);
    }

    public function logger(): LoggerInterface
    {
        return $this->settings->logger;
    }

    /** @throws ExceptionInterface */
    private function attach(OwnerKind $kind): ?Owner
    {
        $this->isReply = $kind === OwnerKind::Reply;

        return $this->owner = $this->session?->attach($kind, $this->settings->leaseMs);
    }
}
