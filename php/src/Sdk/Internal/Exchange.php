<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

use McpState\Exception\ExceptionInterface;
use McpState\Session;

/**
 * One exchange that the SDK serves: from its `gc()` to the end of the stream or reply.
 *
 * Two roles of session objects must be told apart (the SDK does not say): the one that it resolves for the client's
 * message, with `create()` or with `createWithId()` right after `exists()`, and those of its loop.
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

    private string $for = '';

    /** Why the store refused to let the client's message be served. */
    public ?ExceptionInterface $refusal = null;

    private RequestMemory $memory;

    public function __construct(private readonly Settings $settings)
    {
        $this->memory = new RequestMemory();
    }

    /**
     * The SDK begins to serve a message.
     *
     * @param string $for which, for whoever looks at the store; '' where that is not known
     */
    public function begin(string $for = ''): void
    {
        $this->hasBegun = true;
        $this->for = $for;

        foreach ($this->shares as $share) {
            $share->questions->for = $for;
        }

        $this->refusal = null;
        $this->found = null;
    }

    public function share(string $id): ?Share
    {
        return $this->shares[$id] ?? null;
    }

    /**
     * What this exchange has of the session, from now on. Of sessions that it does not serve and asks nothing it keeps
     * nothing, since a process that only sends notifications may do so for long, to many.
     */
    public function open(string $id, ?Session $session): Share
    {
        foreach ($this->shares as $other => $share) {
            if ($other !== $this->id && $share->isIdle()) {
                unset($this->shares[$other]);
            }
        }

        $share = new Share($id, $session, $this->settings);
        $share->questions->for = $this->for;

        return $this->shares[$id] = $share;
    }

    public function find(Share $share): void
    {
        $this->found = $share;
    }

    /** Whether the SDK resolves the client's message to this session now: it has just asked whether it exists. */
    public function isResolving(string $id): bool
    {
        $isResolving = $this->hasBegun && $this->found?->id === $id;
        $this->found = null;

        return $isResolving;
    }

    /** The SDK has resolved the client's message to this session: a new request begins. */
    public function resolve(string $id): void
    {
        $this->id = $id;
        $this->memory = new RequestMemory();
    }

    /** Whether messages to this session are this exchange's to deliver. */
    public function serves(string $id): bool
    {
        return $this->id === $id;
    }

    /** What belongs to the latest request of the client. */
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
