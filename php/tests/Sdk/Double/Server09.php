<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk\Double;

use Mcp\Server\Session\SessionInterface;
use Symfony\Component\Uid\Uuid;

/**
 * The SDK from 0.9: responses bypass the session; a question that cannot be saved is rolled back; each stream waits
 * only for its own request, and the loop has no clock of its own.
 */
final class Server09 extends Server
{
    /** @var list<array<string, mixed>> */
    private array $responses = [];

    private ?int $awaited = null;

    protected function process(Message $message, SessionInterface $session): void
    {
        if (isset($message->data['method'], $message->data['id'])) {
            $this->request($message, $session);
        } elseif (isset($message->data['method'])) {
            $session->set('initialized', true);
        } else {
            $this->response($message->data, $session);
        }
    }

    protected function direct(): array
    {
        [$responses, $this->responses] = [$this->responses, []];

        return \array_map(static fn (array $response): array => ['message' => self::encode($response)], $responses);
    }

    protected function turn(Uuid $id): bool
    {
        $pending = $this->pending($id);

        if ($this->awaited === null || !isset($pending[$this->awaited])) {
            $this->resume(null, $id);

            return true;
        }

        $answer = $this->answer($this->awaited, $id);

        if ($answer !== null) {
            $this->resume($answer, $id);
        }

        return $answer !== null;
    }

    protected function consume(Uuid $id): array
    {
        $session = $this->sessions->createWithId($id);
        $queue = $session->get(self::QUEUE, []);

        if ($queue !== []) {
            $session->set(self::QUEUE, []);
            $session->save();
        }

        return $queue;
    }

    private function request(Message $request, SessionInterface $session): void
    {
        $this->begin($request, $session);
        $fiber = new \Fiber(fn (): array => $this->respond($request, $session));
        $yielded = $fiber->start();

        if (!$fiber->isSuspended()) {
            $this->responses[] = $fiber->getReturn();

            return;
        }

        $before = $session->all();

        try {
            $this->yielded($yielded, $session);
            $isSaved = $session->save();
        } catch (\Exception) {
            $isSaved = false;
        }

        if ($isSaved) {
            $this->fiber = $fiber;
        } else {
            $session->hydrate($before);
            $this->responses[] = self::error($request->data['id'], -32603, 'The session could not be saved.');
        }
    }

    private function response(array $message, SessionInterface $session): void
    {
        $entry = \is_int($message['id']) ? $session->get(self::PENDING, [])[$message['id']] ?? null : null;

        if (\is_array($entry) && \time() - $entry['timestamp'] < $entry['timeout']) {
            $session->set(self::RESPONSES . $message['id'], $message);
            $session->forget(self::META);
        }
    }

    private function resume(?array $with, Uuid $id): void
    {
        $this->awaited = null;
        $yielded = $this->fiber->resume($with);

        if ($yielded !== null) {
            $session = $this->sessions->createWithId($id);
            $this->yielded($yielded, $session);
            $session->save();
        }
    }

    private function yielded(array $yielded, SessionInterface $session): void
    {
        if ($yielded['type'] === 'notification') {
            $this->queue($yielded['notification'], 'notification', $session);

            return;
        }

        $id = $session->get(self::COUNTER, 1000);
        $session->set(self::COUNTER, $id + 1);
        $pending = $session->get(self::PENDING, []);
        $pending[$id] = ['request_id' => $id, 'timeout' => $yielded['timeout'], 'timestamp' => \time()];
        $session->set(self::PENDING, $pending);
        $this->queue($yielded['request'] + ['id' => $id], 'request', $session);
        $this->awaited = $id;
    }

    private function queue(array $message, string $type, SessionInterface $session): void
    {
        $queue = $session->get(self::QUEUE, []);
        $queue[] = ['message' => self::encode($message), 'context' => ['type' => $type]];
        $session->set(self::QUEUE, $queue);
    }

    private function pending(Uuid $id): array
    {
        return $this->sessions->createWithId($id)->get(self::PENDING, []);
    }

    private function answer(int $requestId, Uuid $id): ?array
    {
        $response = $this->sessions->createWithId($id)->get(self::RESPONSES . $requestId);

        if ($response === null) {
            $entry = $this->pending($id)[$requestId] ?? null;

            if ($entry !== null && \time() - $entry['timestamp'] < $entry['timeout']) {
                return null;
            }
        }

        // After a timeout or an answer, the SDK removes the request through another session object.
        $session = $this->sessions->createWithId($id);
        $pending = $session->get(self::PENDING, []);
        $response = $session->get(self::RESPONSES . $requestId);
        $session->set(self::RESPONSES . $requestId, null);
        unset($pending[$requestId]);
        $session->set(self::PENDING, $pending);
        $session->save();

        return $response ?? self::error($requestId, -32603, 'Request timed out');
    }
}
