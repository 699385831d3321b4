<?php

declare(strict_types=1);

namespace McpState\Tests\Fuzz;

use McpState\Internal\Json;
use McpState\Owner;
use McpState\PendingStatus;
use McpState\Session;
use McpState\Store;

/** Calls methods with valid values and compares the results with the model. */
final class Tame
{
    private readonly Session $session;
    private readonly Owner $owner;
    private readonly Model $model;

    public function __construct(Store $store)
    {
        $this->session = $store->createSession();
        $this->owner = $this->session->attach();
        $this->model = new Model();
    }

    public function call(): void
    {
        $key = Values::pick(['a', 'a.b', 'a.b.c', 'a.0', 'a.1', 'a.01', 'b', 'b.a.1', 'é.x']);
        // This is the form in which the value is read again.
        $value = Json::decode(Json::encode(Values::json()));
        [$got, $expected] = match (\mt_rand(0, 20)) {
            0, 1, 2, 3 => [$this->session->set($key, $value), $this->model->set($key, $value)],
            4 => [$this->session->get($key, 'none'), $this->model->get($key) ?? 'none'],
            5 => [$this->session->has($key), $this->model->get($key) !== null],
            6 => [$this->session->remove($key), $this->model->remove($key)],
            7 => [$this->session->take($key), $this->taken($key)],
            8 => [$this->session->putIfAbsent($key, $value), $this->putIfAbsent($key, $value)],
            9 => $this->compareAndSet($key, $value),
            10 => $this->patch($key, $value),
            11 => $this->update($key, $value),
            12, 13 => [$this->owner->enqueueOutgoing('"m"', $key), $this->model->enqueue('"m"', $key)],
            14 => $this->take(\mt_rand(0, 3)),
            15 => $this->peek(\mt_rand(0, 3)),
            16, 17 => $this->request(),
            18, 19 => $this->answer(),
            default => $this->inFlight(Values::pick([1, '1', 'x'])),
        };
        $all = [$this->session->all(), $this->model->all()];

        if (!Model::same($got, $expected) || !Model::same(...$all)) {
            throw new \LogicException(\var_export(['key' => $key, 'got' => $got, 'expected' => $expected, 'all' => $all], true));
        }

        $this->keepSmall();
    }

    /** Keeps the session far below its limits. */
    private function keepSmall(): void
    {
        if (\strlen(\json_encode($this->model->all(), \JSON_THROW_ON_ERROR)) > 20_000) {
            foreach (\array_keys($this->model->all()) as $name) {
                $this->session->remove((string) $name);
                $this->model->remove((string) $name);
            }
        }

        if (\count($this->model->queue) > 100) {
            $this->take(1000);
        }
    }

    private function taken(string $key): mixed
    {
        $value = $this->model->get($key);
        $this->model->remove($key);

        return $value;
    }

    private function putIfAbsent(string $key, mixed $value): bool
    {
        $isAbsent = $this->model->get($key) === null;

        if ($isAbsent) {
            $this->model->set($key, $value);
        }

        return $isAbsent;
    }

    /** @return array{mixed, mixed} */
    private function compareAndSet(string $key, mixed $value): array
    {
        $expected = \mt_rand(0, 1) === 0 ? $this->session->get($key) : Values::json();
        $expected = Json::decode(Json::encode($expected));
        $equal = Model::same($this->model->get($key), $expected);
        $set = $this->session->compareAndSet($key, $expected, $value);

        if ($equal) {
            $value === null ? $this->model->remove($key) : $this->model->set($key, $value);
        }

        return [$set, $equal];
    }

    /** @return array{mixed, mixed} */
    private function patch(string $key, mixed $value): array
    {
        $removed = Values::pick(['a.b', 'b', 'c']);
        $this->session->patch([$key => $value, 'c.d' => 1], [$removed]);
        $this->model->remove($removed);
        $this->model->set($key, $value);
        $this->model->set('c.d', 1);

        return [null, null];
    }

    /** @return array{mixed, mixed} */
    private function update(string $key, mixed $value): array
    {
        $before = $this->model->get($key);
        $got = $this->session->update($key, static fn (mixed $current): array => [$value, $current]);
        $this->model->set($key, [$value, $before]);

        return [$got, [$value, $before]];
    }

    /** @return array{mixed, mixed} */
    private function take(int $max): array
    {
        [$got, $expected] = $this->peek($max);
        $messages = $this->owner->takeOutgoing($max);
        $this->model->acknowledge(\array_key_last($messages) === null ? 0 : \end($messages)->sequence);

        return [[$got, \count($messages)], [$expected, \count($expected)]];
    }

    /** @return array{mixed, mixed} */
    private function peek(int $max): array
    {
        $messages = \array_map(
            static fn ($message) => [$message->sequence, $message->body, $message->context],
            $this->owner->peekOutgoing($max),
        );

        return [$messages, \array_slice($this->model->queue, 0, $max)];
    }

    /** @return array{mixed, mixed} */
    private function request(): array
    {
        if (\count($this->model->pending) > 50) {
            return $this->answer();
        }

        $request = $this->owner->sendRequest(['jsonrpc' => '2.0', 'method' => 'm'], 100_000);
        $this->model->enqueue($this->owner->peekOutgoing(1000)[\count($this->model->queue)]->body, '');
        $isNew = !\array_key_exists($request->id, $this->model->pending);
        $this->model->pending[$request->id] = null;

        return [[$isNew, $request->claim()->status->name], [true, PendingStatus::Waiting->name]];
    }

    /** @return array{mixed, mixed} */
    private function answer(): array
    {
        if ($this->model->pending === []) {
            return [$this->owner->claimAny(), null];
        }

        $id = \array_rand($this->model->pending);
        $first = $this->model->pending[$id];
        $delivery = $this->session->deliverResponse($id, "[$id]");
        $claim = $this->owner->pendingRequest($id)->claim();
        unset($this->model->pending[$id]);
        $again = $this->owner->pendingRequest($id)->claim();

        return [
            [$delivery->delivered, $claim->payload, $again->status->name],
            [$first === null, $first ?? "[$id]", PendingStatus::Unknown->name],
        ];
    }

    /** @return array{mixed, mixed} */
    private function inFlight(int|string $id): array
    {
        $at = \array_search($id, $this->model->inFlight, true);

        if ($at === false) {
            $this->model->inFlight[] = $id;

            return [[$this->owner->beginRequest($id), $this->owner->isCancelled($id)], [true, false]];
        }

        unset($this->model->inFlight[$at]);
        $outcome = $this->session->cancelRequest($id)->name;

        return [[$outcome, $this->owner->finishRequest($id), $this->owner->finishRequest($id)], ['Cancelled', true, null]];
    }
}
