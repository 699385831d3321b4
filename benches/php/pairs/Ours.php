<?php

declare(strict_types=1);

namespace McpState\Bench\Pairs;

use McpState\Bench\Pair;
use McpState\Interest;
use McpState\Owner;
use McpState\PendingRequest;
use McpState\Session;
use McpState\Store;
use McpState\WaitStatus;

/** mcp-state: the stream sleeps in wait(), and another process delivers the answer. */
final class Ours implements Pair
{
    private const SESSION = 'bench';

    private readonly Session $session;
    private Owner $owner;
    private PendingRequest $request;
    private int $cursor = 0;

    public static function prepare(string $place): void
    {
        Store::open($place)->createSession(self::SESSION);
    }

    public function __construct(string $place)
    {
        $this->session = Store::open($place)->openSession(self::SESSION);
    }

    public function ask(): string
    {
        $this->owner ??= $this->session->attach();
        $this->request = $this->owner->sendRequest('{"jsonrpc":"2.0","method":"elicitation/create"}');
        $this->owner->takeOutgoing();

        return (string) $this->request->id;
    }

    public function wait(): void
    {
        do {
            $result = $this->owner->wait(1000, $this->cursor, Interest::Resolution);
        } while ($result->status !== WaitStatus::Ready);
        $this->cursor = $result->cursor;
    }

    public function finish(): void
    {
        if (!$this->request->claim()->isAnswered()) {
            throw new \RuntimeException('there was no answer');
        }
    }

    public function answer(string $question): void
    {
        $this->session->deliverResponse((int) $question, '{"action":"accept"}');
    }
}
