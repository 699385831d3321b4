<?php

declare(strict_types=1);

namespace McpState\Bench\Peers;

use McpState\Bench\Content;
use McpState\Bench\Peer;
use McpState\Owner;
use McpState\Session;
use McpState\Store;

/** mcp-state, through the backend of this PHP. */
final class Ours implements Peer
{
    private readonly Store $store;
    private Session $session;
    private Owner $owner;

    public function __construct(string $place)
    {
        $this->store = Store::open($place);
    }

    public function populate(int $sessions, int $measured, int $content): void
    {
        $small = Content::attributes(1000);
        $large = Content::attributes($content);
        for ($number = 0; $number < $sessions; ++$number) {
            $this->store->createSession(Content::id($number))->patch($number < $measured ? $large : $small);
        }
    }

    public function enter(int $session): void
    {
        $this->session = $this->store->openSession(Content::id($session))
            ?? throw new \RuntimeException("there is no session $session");
        $this->owner = $this->session->attach();
    }

    public function send(string $message): int
    {
        return $this->owner->sendRequest($message)->id;
    }

    public function take(): ?string
    {
        $message = null;
        foreach ($this->owner->takeOutgoing() as $outgoing) {
            $message = $outgoing->body;
        }

        return $message;
    }

    public function deliver(int $id, string $response): bool
    {
        return $this->session->deliverResponse($id, $response)->delivered;
    }

    public function claim(int $id): ?string
    {
        return $this->owner->pendingRequest($id)->claim()->payload;
    }

    public function get(): ?string
    {
        return $this->session->get('client.name');
    }

    public function patch(string $name, string $version): void
    {
        $this->session->patch(['client.name' => $name, 'client.version' => $version]);
    }
}
