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
 * A session in the store, together with the owner of one exchange.
 *
 * The owner is attached on first use, so that a plain call writes nothing. If the store has released the owner, the
 * next operation attaches a new one; the pending requests of the released owner are abandoned.
 *
 * @internal
 */
final class OwnedSession
{
    private ?Owner $owner = null;

    /** Whether the owner is a reply, which only keeps the session in use. A stream's owner replaces it. */
    private bool $isReply = false;

    private bool $hasEnded = false;

    public function __construct(
        public readonly string $id,
        private ?Session $session,
        private readonly Settings $settings,
    ) {
    }

    /** Returns the session in the store; null if it has ended. */
    public function session(): ?Session
    {
        return $this->session;
    }

    /**
     * Returns the owner of the stream, and attaches it on first use; null if the session has ended.
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
     * Attaches a reply owner if there is no owner yet. It marks the session as used, unlike the sessions that a flood
     * of `initialize` creates.
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
     * Returns the result of $do for the owner; null if $do fails, which is logged.
     *
     * @template T
     *
     * @param \Closure(Owner): T $do
     *
     * @return T|null
     */
    public function asOwner(string $failure, \Closure $do): mixed
    {
        try {
            $owner = $this->owner();

            return $owner === null ? null : $do($owner);
        } catch (ExceptionInterface $e) {
            $this->failed($failure, $e);
        }

        return null;
    }

    /** Tells whether $owner is the current owner of this exchange. */
    public function isOwner(?Owner $owner): bool
    {
        return $owner !== null && $owner === $this->owner;
    }

    /** Forgets the owner, which the store has released. */
    public function release(): void
    {
        $this->owner = null;
    }

    /** Forgets the session, which has ended. */
    public function lose(): void
    {
        $this->session = null;
        $this->owner = null;
    }

    /** Detaches the owner for good. */
    public function end(): void
    {
        try {
            $this->owner?->detach();
        } catch (ExceptionInterface $e) {
            $this->failed('cannot detach an owner', $e);
        }

        $this->owner = null;
        $this->hasEnded = true;
    }

    /** Handles a failure: forgets an ended session or a released owner, and logs the failure. */
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
