<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk\Double;

use Mcp\Server\Session\SessionInterface;
use Mcp\Server\Session\SessionManagerInterface;
use Symfony\Component\Uid\Uuid;

/**
 * A double of the SDK's server, which calls the session manager like the SDK. It was written from a description of the
 * SDK's call sequences and not from its code. The subclasses represent the two generations of the SDK.
 *
 * One object serves one exchange, like a PHP process under php-fpm, or one client on a pipe. It holds one fiber: if a
 * second fiber waits for the client, the server drops the first, like the SDK's transports. A tool is a function of its
 * arguments and a {@see Context}. It runs in a fiber, and asks the client by suspending the fiber.
 */
abstract class Server
{
    protected const COUNTER = '_mcp.request_id_counter';
    protected const QUEUE = '_mcp.outgoing_queue';
    protected const PENDING = '_mcp.pending_requests';
    protected const RESPONSES = '_mcp.responses.';
    protected const META = '_mcp.active_request_meta';

    /** The SDK stores objects of one request under the names of their classes; one of them holds a key. */
    protected const CODEC = 'Mcp\Server\Stateless\RequestStateCodec';
    protected const TOKEN = 'Mcp\Server\Auth\AccessToken';
    public const SIGNING_KEY = 'the-key-that-signs-request-states';

    protected ?\Fiber $fiber = null;

    /** Runs in each turn of the loop in place of the SDK's sleep. */
    public ?\Closure $sleep = null;

    /** @param array<string, \Closure> $tools */
    final public function __construct(
        protected readonly SessionManagerInterface $sessions,
        private readonly array $tools,
    ) {
    }

    /** Serves one POST. */
    public function post(string $input, ?string $sessionId): Reply
    {
        $this->sessions->gc();
        $body = \json_decode($input, true);

        if (!\is_array($body)) {
            return new Reply(400, self::encode(self::error(null, -32700, 'Parse error')));
        }

        $messages = \array_map(
            static fn (array $data): Message => new Message($data),
            \array_is_list($body) ? $body : [$body],
        );
        $session = $this->resolve($messages, $sessionId);

        if ($session instanceof Reply) {
            return $session;
        }

        foreach ($messages as $message) {
            $this->process($message, $session);
        }

        $session->save();
        $id = $session->getId();
        $reply = $this->fiber === null ? self::json([...$this->consume($id), ...$this->direct()]) : $this->stream($id);
        $reply->sessionId = $id->toRfc4122();

        return $reply;
    }

    /**
     * Serves one client, line by line.
     *
     * @param resource $input
     * @param resource $output
     */
    public function stdio($input, $output): void
    {
        $id = null;
        $write = static fn (string $message) => \fwrite($output, $message . "\n");
        \stream_set_blocking($input, false);

        while (!\feof($input)) {
            $line = \fgets($input);

            if ($line === false) {
                \usleep(5000);
            } else {
                $reply = $this->post($line, $id?->toRfc4122());
                $id ??= Uuid::fromString((string) $reply->sessionId);
                \array_map($write, \array_column($this->direct(), 'message'));

                if ($reply->body !== null) {
                    $write($reply->body);
                }
            }

            if ($this->fiber?->isTerminated()) {
                $write(self::encode($this->fiber->getReturn()));
                $this->fiber = null;
            } elseif ($this->fiber !== null) {
                $this->turn($id);
            }

            if ($id !== null) {
                \array_map($write, \array_column($this->consume($id), 'message'));
            }
        }
    }

    public function delete(string $sessionId): Reply
    {
        $this->sessions->destroy(Uuid::fromString($sessionId));

        return new Reply(200);
    }

    abstract protected function process(Message $message, SessionInterface $session): void;

    /** Checks once for the event that the fiber waits for, and tells whether the fiber was resumed. */
    abstract protected function turn(Uuid $id): bool;

    /**
     * Takes the session's queued messages.
     *
     * @return list<array{message: string}>
     */
    abstract protected function consume(Uuid $id): array;

    /**
     * Takes the responses that bypass the session.
     *
     * @return list<array{message: string}>
     */
    protected function direct(): array
    {
        return [];
    }

    protected function begin(Message $request, SessionInterface $session): void
    {
        $session->set(self::META, $request->data['params']['_meta'] ?? []);
        $session->set(self::CODEC, new Codec(self::SIGNING_KEY));
        $session->set(self::TOKEN, null);
    }

    /** @return array<string, mixed> */
    protected function respond(Message $message, SessionInterface $session): array
    {
        $request = $message->data;
        $params = $request['params'] ?? [];

        try {
            $result = match ($request['method']) {
                'initialize' => $this->initialize($params, $session),
                'ping' => new \stdClass(),
                'logging/setLevel' => $this->setLevel($params['level'], $session),
                'resources/subscribe' => $this->subscribe($params['uri'], $session),
                'tools/call' => $this->call($params, new Context($session)),
                default => throw new \BadMethodCallException($request['method']),
            };

            return ['jsonrpc' => '2.0', 'id' => $request['id'], 'result' => $result];
        } catch (\BadMethodCallException $e) {
            return self::error($request['id'], -32601, $e->getMessage());
        } catch (\Throwable $e) {
            return self::error($request['id'], -32603, $e->getMessage());
        }
    }

    /** Returns a reply that is a stream. */
    protected function stream(Uuid $id): Reply
    {
        return new Reply(200, stream: function (\Closure $write) use ($id): void {
            try {
                while ($this->fiber->isSuspended()) {
                    \array_map($write, \array_column($this->consume($id), 'message'));

                    if (!$this->turn($id)) {
                        $this->sleep();
                    }
                }

                $write(self::encode($this->fiber?->getReturn()));
            } finally {
                $this->fiber = null;
            }
        });
    }

    protected function sleep(): void
    {
        $this->sleep === null ? \usleep(100_000) : ($this->sleep)();
    }

    protected static function encode(mixed $message): string
    {
        return \json_encode($message, \JSON_THROW_ON_ERROR);
    }

    /** @return array<string, mixed> */
    protected static function error(mixed $id, int $code, string $message): array
    {
        return ['jsonrpc' => '2.0', 'id' => $id, 'error' => ['code' => $code, 'message' => $message]];
    }

    /** @param list<array{message: string}> $rows */
    protected static function json(array $rows): Reply
    {
        $messages = \array_column($rows, 'message');

        return match (\count($messages)) {
            0 => new Reply(202),
            1 => new Reply(200, $messages[0]),
            default => new Reply(200, '[' . \implode(',', $messages) . ']'),
        };
    }

    /** @param list<Message> $messages */
    private function resolve(array $messages, ?string $sessionId): SessionInterface|Reply
    {
        if ($messages[0]->getMethod() === 'initialize') {
            return $this->sessions->create();
        }

        try {
            $uuid = Uuid::fromString((string) $sessionId);
        } catch (\InvalidArgumentException) {
            return new Reply(400, self::encode(self::error($messages[0]->data['id'] ?? null, -32600, 'No session id')));
        }

        if (!$this->sessions->exists($uuid)) {
            return new Reply(404, self::encode(self::error($messages[0]->data['id'] ?? null, -32600, 'Session not found')));
        }

        return $this->sessions->createWithId($uuid);
    }

    /** @return array<string, mixed> */
    private function initialize(array $params, SessionInterface $session): array
    {
        $session->set('client_info', $params['clientInfo'] ?? []);
        // The SDK stores objects here, which a later request reads as arrays.
        $session->set('client_capabilities', (object) ['elicitation' => new \stdClass()]);
        $session->set('protocol_version', $params['protocolVersion'] ?? '');

        return [
            'protocolVersion' => $params['protocolVersion'] ?? '',
            'capabilities' => new \stdClass(),
            'serverInfo' => ['name' => 'double', 'version' => '1'],
        ];
    }

    private function setLevel(string $level, SessionInterface $session): \stdClass
    {
        $session->set('_mcp.logging_level', $level);

        return new \stdClass();
    }

    private function subscribe(string $uri, SessionInterface $session): \stdClass
    {
        $subscriptions = $session->get('resource_subscriptions', []);
        $subscriptions[$uri] = true;
        $session->set('resource_subscriptions', $subscriptions);
        $session->save();

        return new \stdClass();
    }

    /** @return array<string, mixed> */
    private function call(array $params, Context $context): array
    {
        $tool = $this->tools[$params['name']] ?? throw new \BadMethodCallException("no tool {$params['name']}");

        try {
            return ['content' => [['type' => 'text', 'text' => $tool($context, ...($params['arguments'] ?? []))]]];
        } catch (\Exception $e) {
            return ['isError' => true, 'content' => [['type' => 'text', 'text' => $e->getMessage()]]];
        }
    }
}
