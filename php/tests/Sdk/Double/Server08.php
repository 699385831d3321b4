<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk\Double;

use Mcp\Server\Session\SessionInterface;
use Symfony\Component\Uid\Uuid;

/** The SDK from 0.5 to 0.8: all messages to the client pass through the session's queue. */
final class Server08 extends Server
{
    protected function process(Message $message, SessionInterface $session): void
    {
        if (isset($message->data['method'], $message->data['id'])) {
            $this->request($message, $session);
        } elseif (isset($message->data['method'])) {
            $session->set('initialized', true);
        } else {
            $session->set(self::RESPONSES . $message->data['id'], $message->data);
            $session->forget(self::META);
        }
    }

    protected function turn(Uuid $id): bool
    {
        $pending = $this->sessions->createWithId($id)->get(self::PENDING, []);

        if ($pending === []) {
            $this->resume(null, $id);

            return true;
        }

        foreach ($pending as $entry) {
            $answer = $this->answer($entry['request_id'], $id);

            if ($answer === null && \time() - $entry['timestamp'] >= $entry['timeout']) {
                $answer = self::error($entry['request_id'], -32603, 'Request timed out');
            }

            if ($answer !== null) {
                $this->resume($answer, $id);

                return true;
            }
        }

        return false;
    }

    protected function consume(Uuid $id): array
    {
        $session = $this->sessions->createWithId($id);
        $queue = $session->get(self::QUEUE, []);
        $session->set(self::QUEUE, []);
        $session->save();

        return $queue;
    }

    private function request(Message $request, SessionInterface $session): void
    {
        $this->begin($request, $session);
        $fiber = new \Fiber(fn (): array => $this->respond($request, $session));
        $yielded = $fiber->start();

        if ($fiber->isSuspended()) {
            $this->yielded($yielded, $session);
            $this->fiber = $fiber;
        } else {
            $this->queue(self::encode($fiber->getReturn()), 'response', $session);
        }
    }

    private function resume(?array $with, Uuid $id): void
    {
        $yielded = $this->fiber->resume($with);

        if ($yielded !== null) {
            $session = $this->sessions->createWithId($id);

            try {
                $this->yielded($yielded, $session);
            } finally {
                $session->save();
            }
        }
    }

    private function yielded(array $yielded, SessionInterface $session): void
    {
        if ($yielded['type'] === 'notification') {
            $this->queue(self::encode($yielded['notification']), 'notification', $session);

            return;
        }

        $id = $session->get(self::COUNTER, 1000);
        $session->set(self::COUNTER, $id + 1);
        $pending = $session->get(self::PENDING, []);
        $pending[$id] = ['request_id' => $id, 'timeout' => $yielded['timeout'], 'timestamp' => \time()];
        $session->set(self::PENDING, $pending);
        $this->queue(self::encode($yielded['request'] + ['id' => $id]), 'request', $session);
    }

    private function queue(string $message, string $type, SessionInterface $session): void
    {
        $queue = $session->get(self::QUEUE, []);
        $queue[] = ['message' => $message, 'context' => ['type' => $type]];
        $session->set(self::QUEUE, $queue);
    }

    private function answer(int $requestId, Uuid $id): ?array
    {
        $session = $this->sessions->createWithId($id);
        $response = $session->get(self::RESPONSES . $requestId);

        if ($response !== null) {
            $session->set(self::RESPONSES . $requestId, null);
            $pending = $session->get(self::PENDING, []);
            unset($pending[$requestId]);
            $session->set(self::PENDING, $pending);
            $session->save();
        }

        return $response;
    }
}
