<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk\Double;

use Mcp\Server\Session\SessionInterface;
use Mcp\Server\Session\SessionManagerInterface;
use Symfony\Component\Uid\Uuid;

/**
 * What an SDK server asks of its session manager, call by call: a double of the SDK, written from a description of its
 * call sequences and not from its code. The subclasses are its two generations.
 *
 * One object serves one exchange, as a PHP process under php-fpm does. A tool is a function of its arguments and a
 * {@see Context}; it runs in a fiber, and asks the client by suspending it.
 */
abstract class Server
{
    protected const COUNTER = '_mcp.request_id_counter';
    protected const QUEUE = '_mcp.outgoing_queue';
    protected const PENDING = '_mcp.pending_requests';
    protected const RESPONSES = '_mcp.responses.';
    protected const META = '_mcp.active_request_meta';

    /** Under class names the SDK keeps objects that concern one request; one of them holds a key. */
    protected const CODEC = 'Mcp\Server\Stateless\RequestStateCodec';
    protected const TOKEN = 'Mcp\Server\Auth\AccessToken';
    public const SIGNING_KEY = 'the-key-that-signs-request-states';

    protected ?\Fiber $fiber = null;

    /** The turn of the loop, for tests: runs where the SDK sleeps. */
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
        $message = \json_decode($input, true);

        if (!\is_array($message)) {
            return new Reply(400, self::encode(self::error(null, -32700, 'Parse error')));
        }

        if (($message['method'] ?? null) === 'initialize') {
            $session = $this->sessions->create();
        } else {
            try {
                $uuid = Uuid::fromString((string) $sessionId);
            } catch (\InvalidArgumentException) {
                return new Reply(400, self::encode(self::error($message['id'] ?? null, -32600, 'No session id')));
            }

            if (!$this->sessions->exists($uuid)) {
                return new Reply(404, self::encode(self::error($message['id'] ?? null, -32600, 'Session not found')));
            }

            $session = $this->sessions->createWithId($uuid);
        }

        $reply = $this->process($message, $session);
        $reply->sessionId = $session->getId()->toRfc4122();

        return $reply;
    }

    public function delete(string $sessionId): Reply
    {
        $this->sessions->destroy(Uuid::fromString($sessionId));

        return new Reply(200);
    }

    /** @param array<string, mixed> $message */
    abstract protected function process(array $message, SessionInterface $session): Reply;

    /** Serves the client while the fiber waits for it. */
    abstract protected function loop(Uuid $id, \Closure $write): void;

    /** @param array<string, mixed> $request */
    protected function begin(array $request, SessionInterface $session): void
    {
        $session->set(self::META, $request['params']['_meta'] ?? []);
        $session->set(self::CODEC, new Codec(self::SIGNING_KEY));
        $session->set(self::TOKEN, null);
    }

    /**
     * @param array<string, mixed> $request
     *
     * @return array<string, mixed>
     */
    protected function respond(array $request, SessionInterface $session): array
    {
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

    /** The reply of a stream. */
    protected function stream(Uuid $id): Reply
    {
        return new Reply(200, stream: function (\Closure $write) use ($id): void {
            try {
                $this->loop($id, $write);
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

    /** @return array<string, mixed> */
    private function initialize(array $params, SessionInterface $session): array
    {
        $session->set('client_info', $params['clientInfo'] ?? []);
        // The SDK keeps objects here, which a later request finds as arrays.
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
