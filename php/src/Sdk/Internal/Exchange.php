<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

use McpState\Exception\ExceptionInterface;
use McpState\Session;

/**
 * One exchange that the SDK serves, from its call of `gc()` to the end of the stream or reply.
 *
 * The SDK uses session objects in two roles, which it does not name. One is resolved for the client's message, with
 * `create()` or with `createWithId()` directly after `exists()`. All others belong to the SDK's loop.
 *
 * @internal
 */
final class Exchange
{
    /** @var array<string, Share> by session id */
    private array $shares = [];

    /** The session that `exists()` found, until the next call. */
    private ?Share $found = null;

    private ?string $id = null;

    private bool $hasBegun = false;

    private string $description = '';

    /** The failure because of which the store refused to serve the client's message. */
    public ?ExceptionInterface $refusal = null;

    private RequestMemory $memory;

    public function __construct(private readonly Settings $settings)
    {
        $this->memory = new RequestMemory();
    }

    /**
     * Begins to serve a message.
     *
     * @param string $description the message, for display; empty if unknown
     */
    public function begin(string $description = ''): void
    {
        $this->hasBegun = true;
        $this->description = $description;

        foreach ($this->shares as $share) {
            $share->questions->description = $description;
        }

        $this->refusal = null;
        $this->found = null;
    }

    public function share(string $id): ?Share
    {
        return $this->shares[$id] ?? null;
    }

    /**
     * Returns the new share of this exchange in a session. The exchange drops its shares of other sessions that it
     * neither serves nor asks anything, because a long-running process may send notifications to many sessions.
     */
    public function open(string $id, ?Session $session): Share
    {
        foreach ($this->shares as $other => $share) {
            if ($other !== $this->id && $share->isIdle()) {
                unset($this->shares[$other]);
            }
        }

        $share = new Share($id, $session, $this->settings);
        $share->questions->description = $this->description;

        return $this->shares[$id] = $share;
    }

    public function find(Share $share): void
    {
        $this->found = $share;
    }

    /**
     * Tells whether the SDK now resolves the client's message to this session, which it does directly after `exists()`.
     */
    public function isResolving(string $id): bool
    {
        $isResolving = $this->hasBegun && $this->found?->id === $id;
        $this->found = null;

        return $isResolving;
    }

    /** Begins a new request: the SDK has resolved the client's message to this session. */
    public function resolve(string $id): void
    {
        $this->id = $id;
        $this->memory = new RequestMemory();
    }

    /** Tells whether this exchange delivers the outgoing messages of this session. */
    public function serves(string $id): bool
    {
        return $this->id === $id;
    }

    /** Returns the memory of the client's latest request. */
    public function memory(): RequestMemory
    {
        return $this->memory;
    }

    public function end(): void
    {
        foreach ($this->shares as $share) {
            $share->end();
        }

        $this->shares = [];
    }

    public function __destruct()
    {
        $this->end();
    }
}
