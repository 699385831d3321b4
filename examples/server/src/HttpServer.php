<?php

declare(strict_types=1);

namespace McpState\Example;

use McpState\Example\State\BlobSessions;
use McpState\Example\State\McpStateSessions;
use McpState\Example\State\Sessions;
use McpState\Example\State\SessionState;
use McpState\Exception\ExceptionInterface;
use McpState\Exception\InvalidArgument;
use McpState\Exception\LimitExceeded;
use McpState\Exception\SessionNotFound;
use McpState\Store;

/**
 * Streamable HTTP: each HTTP request receives one reply.
 *
 * - A POST with a request receives its result, as JSON or, if the tool sends other messages first, as an event stream.
 * - A POST with responses and notifications receives 202, whatever their effect.
 * - DELETE ends the session. Everything else receives 405 (a GET stream would occupy a PHP process without need).
 * - If the session does not exist, the reply is 404, and the client starts a new one. If the store fails, the reply is
 *   therefore 503 and never 404.
 */
final class HttpServer
{
    private const SESSION_NOT_FOUND = -32001;
    private const STORE_UNAVAILABLE = -32002;

    private readonly Protocol $protocol;

    /** The id of the only request of the POST: a refusal of the whole POST responds to this request. */
    private int|string|null $requestId = null;

    /**
     * @param \Closure(): Sessions    $sessions opens the store of the sessions
     * @param \Closure(string): mixed $log
     */
    public function __construct(
        Tools $tools,
        private readonly \Closure $sessions,
        private readonly \Closure $log,
        private readonly bool $rejectDuplicates,
        private readonly int $keepAliveMs,
    ) {
        $this->protocol = new Protocol($tools);
    }

    /**
     * @param ?\Closure(Sessions): Sessions $decorate
     * @param ?\Closure(string): mixed $log
     */
    public static function fromEnvironment(Tools $tools, ?\Closure $decorate = null, ?\Closure $log = null): self
    {
        $setting = static fn (string $name, string $default): string => getenv($name) ?: $default;

        return new self(
            $tools,
            static function () use ($setting, $decorate): Sessions {
                $mode = $setting('MCP_STATE_MODE', 'mcp-state');
                $ttlMs = (int) ((float) $setting('MCP_SESSION_TTL', '3600') * 1000);
                $blobs = $setting('MCP_STATE_BLOBS', sys_get_temp_dir() . '/mcp-state-blobs');
                $sessions = match ($mode) {
                    'mcp-state' => new McpStateSessions(Store::open(), $ttlMs),
                    'blob' => new BlobSessions($blobs, $ttlMs, locked: false),
                    'blob-lock' => new BlobSessions($blobs, $ttlMs, locked: true),
                    default => throw new \DomainException("MCP_STATE_MODE is mcp-state, blob or blob-lock, not \"$mode\"."),
                };

                return $decorate === null ? $sessions : $decorate($sessions);
            },
            $log ?? error_log(...),
            rejectDuplicates: $setting('MCP_DUPLICATES', 'isolate') === 'reject',
            keepAliveMs: (int) ((float) $setting('MCP_KEEPALIVE', '15') * 1000),
        );
    }

    public function serve(): void
    {
        try {
            match ($_SERVER['REQUEST_METHOD']) {
                'POST' => $this->post((string) file_get_contents('php://input')),
                'DELETE' => $this->delete(),
                default => $this->refuseMethod(),
            };
        } catch (RpcError $e) {
            $this->send($e->status, Json::error($this->requestId, $e->getCode(), $e->getMessage()));
        } catch (InvalidArgument $e) {
            $this->send(400, Json::error($this->requestId, RpcError::INVALID_REQUEST, $e->getMessage()));
        } catch (SessionNotFound) {
            $this->send(404, Json::error($this->requestId, self::SESSION_NOT_FOUND, 'The session has ended.'));
        } catch (ExceptionInterface $e) {
            ($this->log)((string) $e);
            header('Retry-After: 1');
            $this->send(503, Json::error($this->requestId, self::STORE_UNAVAILABLE, $e->getMessage()));
        } catch (ClientGone $e) {
            ($this->log)($e->getMessage());
        } catch (\Throwable $e) {
            ($this->log)((string) $e);
            $this->send(500, Json::error($this->requestId, RpcError::INTERNAL_ERROR, 'Internal error'));
        }
    }

    private function post(string $body): void
    {
        $version = $_SERVER['HTTP_MCP_PROTOCOL_VERSION'] ?? null;
        if ($version !== null && !in_array($version, Protocol::VERSIONS, true)) {
            throw new RpcError(RpcError::INVALID_REQUEST, "The protocol version $version is not supported.", 400);
        }
        $post = Post::parse($body);
        $this->requestId = count($post->requests) === 1 ? $post->requests[0]['id'] : null;
        $streams = array_filter($post->requests, $this->protocol->streams(...)) !== [];
        if ($post->requests !== []) {
            $this->checkAccept($streams ? 'text/event-stream' : 'application/json');
        }
        $session = $post->initializes() ? ($this->sessions)()->create() : $this->openSession($streams);
        try {
            $this->serveSession($session, $post, $streams);
        } finally {
            $session->end();
        }
    }

    private function serveSession(SessionState $session, Post $post, bool $streams): void
    {
        foreach ($post->requests as $request) {
            if (!$session->begin($request['id'], $this->rejectDuplicates)) {
                $message = 'A request with this id is in flight.';
                $this->send(409, Json::error($request['id'], RpcError::INVALID_REQUEST, $message));

                return;
            }
        }
        foreach ($post->responses as $response) {
            $this->deliver($session, $response);
        }
        foreach ($post->notifications as $notification) {
            $id = $notification['params']['requestId'] ?? null;
            if ($notification['method'] === 'notifications/cancelled' && (is_int($id) || is_string($id))) {
                $session->cancel($id);
            }
        }
        if ($post->initializes()) {
            header('Mcp-Session-Id: ' . $session->id());
        }
        if ($streams) {
            $this->streamResults($session, $post);
        } else {
            $this->replyWithResults($session, $post);
        }
    }

    private function replyWithResults(SessionState $session, Post $post): void
    {
        foreach ($post->requests as $request) {
            $result = $this->result($request, new Call($session, null, null));
            if (!$session->finish($request['id'])) {
                $session->reply($result);
            }
        }
        $messages = $session->take();
        if ($messages === []) {
            $this->send(202);
        } else {
            $single = count($messages) === 1 && !$post->isBatch;
            $this->send(200, $single ? $messages[0] : '[' . implode(',', $messages) . ']');
        }
    }

    private function streamResults(SessionState $session, Post $post): void
    {
        $stream = new EventStream($this->keepAliveMs);
        foreach ($post->requests as $request) {
            $token = $request['params']['_meta']['progressToken'] ?? null;
            try {
                $result = $this->result($request, new Call($session, $stream, $token));
                $cancelled = $session->finish($request['id']);
            } catch (ExceptionInterface $e) {
                if (!headers_sent()) {
                    throw $e;
                }
                $code = $e instanceof SessionNotFound ? self::SESSION_NOT_FOUND : self::STORE_UNAVAILABLE;
                $result = Json::error($request['id'], $code, $e->getMessage());
                $cancelled = false;
            } catch (RequestCancelled) {
                $session->finish($request['id']);
                $cancelled = true;
            }
            if (!$cancelled) {
                $stream->message($result);
            }
        }
        if (!headers_sent()) {
            $this->send(202);
        }
    }

    /**
     * Returns the JSON-RPC response to $request. Exceptions that end the whole exchange pass through.
     *
     * @param array<string, mixed> $request
     */
    private function result(array $request, Call $call): string
    {
        try {
            return Json::result($request['id'], $this->protocol->serve($request, $call));
        } catch (RpcError $e) {
            return Json::error($request['id'], $e->getCode(), $e->getMessage());
        } catch (InvalidArgument | LimitExceeded $e) {
            $code = $e instanceof InvalidArgument ? RpcError::INVALID_PARAMS : RpcError::INTERNAL_ERROR;

            return Json::error($request['id'], $code, $e->getMessage());
        } catch (ExceptionInterface | RequestCancelled | ClientGone $e) {
            throw $e;
        } catch (\Throwable $e) {
            ($this->log)((string) $e);

            return Json::error($request['id'], RpcError::INTERNAL_ERROR, 'Internal error');
        }
    }

    /** @param array<string, mixed> $response */
    private function deliver(SessionState $session, array $response): void
    {
        try {
            $refused = $session->deliver($response['id'], Json::encode($response));
        } catch (LimitExceeded $e) {
            throw new RpcError(RpcError::INVALID_REQUEST, $e->getMessage(), 413);
        }
        if ($refused !== null) {
            ($this->log)('Discarded the answer to ' . Json::encode($response['id']) . ": $refused");
        }
    }

    private function delete(): void
    {
        $this->send(($this->sessions)()->destroy($this->sessionId()) ? 204 : 404);
    }

    private function openSession(bool $streams): SessionState
    {
        $session = ($this->sessions)()->open($this->sessionId(), $streams);

        return $session ?? throw new RpcError(self::SESSION_NOT_FOUND, 'There is no such session.', 404);
    }

    private function sessionId(): string
    {
        $id = $_SERVER['HTTP_MCP_SESSION_ID'] ?? '';

        return $id !== '' ? $id : throw new RpcError(RpcError::INVALID_REQUEST, 'The header Mcp-Session-Id is missing.', 400);
    }

    private function checkAccept(string $type): void
    {
        $accept = $_SERVER['HTTP_ACCEPT'] ?? '*/*';
        $group = strtok($type, '/') . '/*';
        if (!str_contains($accept, $type) && !str_contains($accept, $group) && !str_contains($accept, '*/*')) {
            throw new RpcError(RpcError::INVALID_REQUEST, "This reply is $type; the request accepts $accept.", 406);
        }
    }

    private function refuseMethod(): void
    {
        header('Allow: POST, DELETE');
        $this->send(405);
    }

    private function send(int $status, ?string $json = null): void
    {
        if (headers_sent()) {
            return;
        }
        http_response_code($status);
        if ($json !== null) {
            header('Content-Type: application/json');
            echo $json;
        }
    }
}
