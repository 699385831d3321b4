<?php

declare(strict_types=1);

namespace McpState\Sdk;

use Mcp\Server\Session\SessionManagerInterface;
use McpState\CancelOutcome;
use McpState\Exception\ExceptionInterface;
use McpState\Exception\InvalidArgument;
use McpState\Internal\StoreSource;
use McpState\Owner;
use McpState\Sdk\Internal\CallStack;
use McpState\Sdk\Internal\ErrorLog;
use McpState\Sdk\Internal\Exchange;
use McpState\Sdk\Internal\PerContext;
use McpState\Sdk\Internal\Sdk;
use McpState\Sdk\Internal\Settings;
use McpState\Sdk\Internal\WaitingRoom;
use McpState\Sdk\Scope\OneExchange;
use McpState\Sdk\Scope\Scope;
use McpState\Store;
use Psr\Log\LoggerInterface;
use Symfony\Component\Uid\Uuid;

/**
 * Keeps the sessions of an unmodified `mcp/sdk` server in a store that all its processes share:
 *
 *     $server = Server::builder()
 *         ->setSession(sessionManager: SessionManager::open('shm://shop'))
 *
 * Parallel requests of one session keep their own responses, each response of the client reaches the tool that asked,
 * and no request overwrites the changes of another (G1, G3). A tool that waits for the client sleeps until the response
 * arrives; the SDK's loop does not poll meanwhile (G9).
 *
 * The manager replaces the SDK's session store *and* its lock. Do not also call `setSessionLock()` on the builder,
 * which would serve the requests of a session one after another.
 *
 * A manager serves one exchange at a time, or as many as its {@see Scope} tells apart, and holds their owners. Create
 * one manager for each PHP request. In a long-lived process, pass a scope that describes how the process serves
 * requests.
 */
final class SessionManager implements SessionManagerInterface
{
    /** One in this many exchanges collects expired sessions. */
    private const COLLECT_ONE_IN = 100;
    /** The most sessions that one collection removes. */
    private const COLLECT = 100;

    private readonly StoreSource $store;

    private readonly LoggerInterface $logger;

    private readonly Scope $scope;

    private readonly Settings $settings;

    /** @var PerContext<Exchange> */
    private readonly PerContext $exchanges;

    /** @var PerContext<string> the description from {@see serves()} */
    private readonly PerContext $served;

    /** @var PerContext<array{?string}> the principal from {@see actFor()} */
    private readonly PerContext $principals;

    /** @var PerContext<Owner> the owner of a context's in-flight requests until the exchange has its own */
    private readonly PerContext $inFlightOwners;

    /**
     * @param Store|\Closure(): Store           $store       a store, or a closure that opens it on first use
     * @param int|null                          $ttl         milliseconds that a new session lives without being used;
     *                                                       null: the store's `ttl_ms`
     * @param int|null                          $lease       milliseconds that the store keeps a silent exchange whose
     *                                                       process died; null: the store's `lease_ms`
     * @param LoggerInterface|null              $logger      receives discarded responses and all failures; null:
     *                                                       warnings and errors go to PHP's `error_log`
     * @param bool                              $blocking    whether a stream that waits for the client sleeps in the
     *                                                       store if the scope allows it (true), or polls like the SDK
     *                                                       (false)
     * @param Scope|null                        $scope       how this process serves exchanges; null: {@see OneExchange}
     * @param (\Closure(): ?string)|string|null $principal   the principal of the caller. A session exists only for the
     *                                                       principal that created it (G12). See also {@see actFor()}
     * @param list<string>                      $collections keys whose elements are added and removed one by one, in
     *                                                       addition to `resource_subscriptions`
     * @param int|null                          $maxWaiting  how many exchanges of the store may wait for a client at
     *                                                       the same time. Choose less than the number of PHP
     *                                                       processes. A further question to a client fails at once.
     *                                                       Null: the store's `max_waiting`
     *
     * @throws InvalidArgument if $maxWaiting is less than 1
     */
    public function __construct(
        #[\SensitiveParameter] Store|\Closure $store,
        ?int $ttl = null,
        ?int $lease = null,
        ?LoggerInterface $logger = null,
        bool $blocking = true,
        ?Scope $scope = null,
        private readonly \Closure|string|null $principal = null,
        array $collections = [],
        ?int $maxWaiting = null,
    ) {
        if ($maxWaiting !== null && $maxWaiting < 1) {
            throw new InvalidArgument(
                "a maxWaiting of $maxWaiting is not valid: it must be 1 or more, or null for the store's max_waiting"
            );
        }

        $this->store = new StoreSource($store);
        $this->logger = $logger ?? new ErrorLog();
        $this->scope = $scope ?? new OneExchange();
        $this->exchanges = new PerContext();
        $this->principals = new PerContext();
        $this->served = new PerContext();
        $source = $this->store; // Exchanges must not keep the manager alive.
        $this->settings = new Settings(
            $this->logger,
            $ttl,
            $lease,
            $blocking && $this->scope->mayBlock(),
            $this->scope->isOneStream(),
            ['resource_subscriptions', ...$collections],
            static fn (): WaitingRoom => new WaitingRoom($source->get(...), $maxWaiting),
        );
        $this->inFlightOwners = new PerContext();
        [$owners, $scope] = [$this->inFlightOwners, $this->scope];
        $this->settings->onRequestBegun = static fn (int|string $id): ?bool =>
            $owners->get($scope->current())?->finishRequest($id);
    }

    /**
     * Creates a manager on the store that $dsn names, which is opened on first use. The other parameters are those of
     * the constructor.
     *
     * @param string|null                       $dsn         null: the environment variable `MCP_STATE_DSN`, or without
     *                                                       it the ini setting `mcp_state.dsn`
     * @param (\Closure(): ?string)|string|null $principal
     * @param list<string>                      $collections
     */
    public static function open(
        #[\SensitiveParameter] ?string $dsn = null,
        ?int $ttl = null,
        ?int $lease = null,
        ?LoggerInterface $logger = null,
        bool $blocking = true,
        ?Scope $scope = null,
        \Closure|string|null $principal = null,
        array $collections = [],
        ?int $maxWaiting = null,
    ): self {
        return new self(
            static fn (): Store => Store::open($dsn),
            $ttl,
            $lease,
            $logger,
            $blocking,
            $scope,
            $principal,
            $collections,
            $maxWaiting,
        );
    }

    /**
     * Creates a session in the store at once. No other method creates one.
     *
     * @throws \McpState\Exception\LimitExceeded if the store or the principal has too many sessions (G10)
     * @throws ExceptionInterface
     */
    public function create(): Session
    {
        $exchange = $this->exchange();

        try {
            $session = $this->store()->createSession(null, $this->settings->ttlMs, $this->principal());
        } catch (ExceptionInterface $e) {
            $this->logger->error("mcp-state: cannot create a session: {$e->getMessage()}", ['exception' => $e]);
            $exchange->refusal = $e;

            throw $e;
        }

        $exchange->resolve($session->id);

        return new Session(Uuid::fromString($session->id), $exchange->open($session->id, $session), $exchange, true);
    }

    /**
     * Returns an object for the session with this id. If there is no such session, the object is empty and its `save()`
     * returns false. This method never throws.
     */
    public function createWithId(Uuid $id): Session
    {
        $exchange = $this->exchange();
        $sessionId = $id->toRfc4122();
        $isResolved = $exchange->isResolving($sessionId);

        if ($isResolved) {
            $exchange->resolve($sessionId);
        }

        $share = $exchange->share($sessionId);

        if ($share === null) {
            try {
                $share = $exchange->open($sessionId, $this->openSession($id));
            } catch (ExceptionInterface $e) {
                $share = $exchange->open($sessionId, null);
                $share->failed('cannot open a session', $e);
            }
        }

        if ($isResolved) {
            foreach (CallStack::cancelledIds() as $requestId) {
                $this->cancel($id, $requestId);
            }
        }

        return new Session($id, $share, $exchange, $isResolved);
    }

    /**
     * Tells whether the session exists and belongs to the caller (G12).
     *
     * @throws \Throwable if the store fails: since 0.9 the exception for which the SDK answers with HTTP 503. The
     *                    result false would make the client start a new session
     */
    public function exists(Uuid $id): bool
    {
        $exchange = $this->exchange();
        $sessionId = $id->toRfc4122();

        try {
            $session = $this->openSession($id);
        } catch (ExceptionInterface $e) {
            $this->logger->error("mcp-state: cannot find a session: {$e->getMessage()}", ['exception' => $e]);
            $exchange->refusal = $e;

            throw Sdk::storeException($e);
        }

        if ($session === null) {
            return false;
        }

        $share = $exchange->share($sessionId);
        $exchange->find($share?->session() === null ? $exchange->open($sessionId, $session) : $share);

        return true;
    }

    /**
     * Ends a session for good; operations that still use it fail (G7). Returns false if there was no such session.
     *
     * @throws ExceptionInterface
     */
    public function destroy(Uuid $id): bool
    {
        return $this->store()->destroySession($id->toRfc4122(), $this->principal());
    }

    /**
     * Cancels a request of the client that waits for the client's response: the tool's question ends with the JSON-RPC
     * error -32800, in whichever process it waits. The manager handles `notifications/cancelled` itself; call this
     * method if the server learns of a cancellation in another way. This method never throws.
     *
     * @param int|string $requestId the id exactly as the client sent it: `1` is not `"1"`
     *
     * @return bool whether exactly one such request was waiting; if several have this id, none is cancelled
     */
    public function cancel(Uuid $id, int|string $requestId): bool
    {
        try {
            $outcome = $this->openSession($id)?->cancelRequest($requestId);
        } catch (ExceptionInterface $e) {
            $this->logger->error("mcp-state: cannot cancel a request: {$e->getMessage()}", ['exception' => $e]);

            return false;
        }

        if ($outcome === CancelOutcome::Ambiguous) {
            $this->logger->warning('mcp-state: cannot cancel a request: several with its id wait for the client');
        }

        return $outcome === CancelOutcome::Cancelled;
    }

    /**
     * Names the owner of the client's in-flight requests in the present context, until an exchange of this manager has
     * begun them itself. So each request is in flight once and can be cancelled.
     *
     * @internal
     */
    public function setInFlightOwner(?Owner $owner): void
    {
        $context = $this->scope->current();
        $owner === null ? $this->inFlightOwners->unset($context) : $this->inFlightOwners->set($context, $owner);
    }

    /**
     * Begins an exchange: the SDK calls this method first. One in a hundred calls also collects expired sessions (G11).
     */
    public function gc(): void
    {
        if ($this->scope->beginsAnew()) {
            $this->endExchange();
        }

        $context = $this->scope->current();
        $this->exchange()->begin($this->served->get($context) ?? '');
        $this->served->unset($context);

        if (\random_int(1, self::COLLECT_ONE_IN) === 1) {
            try {
                $this->store()->collect(self::COLLECT);
            } catch (ExceptionInterface $e) {
                $this->logger->error("mcp-state: cannot collect sessions: {$e->getMessage()}", ['exception' => $e]);
            }
        }
    }

    /**
     * Ends the current exchange and the effect of {@see actFor()}; the exchange delivers nothing afterwards. A
     * long-lived process should call this method when it has sent the response. Otherwise the next exchange of the same
     * scope ends it.
     */
    public function release(): void
    {
        $this->endExchange();
        $this->principals->unset($this->scope->current());
    }

    /** Sets the principal of the caller in the present context, in place of the constructor's. Null: no principal. */
    public function actFor(?string $principal): void
    {
        $this->principals->set($this->scope->current(), [$principal]);
    }

    /**
     * Describes what the next exchange of the present context serves, for display by `mcp-state show`: the client's
     * JSON-RPC messages. The middleware and the transport of this library call it.
     *
     * @internal
     *
     * @param list<array<array-key, mixed>> $messages
     */
    public function serves(array $messages): void
    {
        $names = [];

        foreach ($messages as $message) {
            $method = $message['method'] ?? null;
            $name = \is_array($message['params'] ?? null) ? $message['params']['name'] ?? null : null;

            if (\is_string($method)) {
                $names[] = \is_string($name) ? "$method $name" : $method;
            }
        }

        $this->served->set($this->scope->current(), \implode(', ', $names));
    }

    /**
     * Returns the failure because of which the store refused to serve the client's message, and forgets it; null if
     * there was none. The client should receive HTTP 503 with Retry-After, whatever response the SDK made. The
     * middleware, transport, bundle and module of this library call it.
     *
     * @internal
     */
    public function takeRefusal(): ?ExceptionInterface
    {
        $exchange = $this->exchanges->get($this->scope->current());
        $refusal = $exchange?->refusal;

        if ($exchange !== null) {
            $exchange->refusal = null;
        }

        return $refusal;
    }

    /**
     * Runs $do at least once a second while a stream sleeps until the client responds, for example to send a
     * keep-alive. An exception from $do ends the stream.
     *
     * @param (\Closure(): mixed)|null $do null: run nothing
     */
    public function whileWaiting(?\Closure $do): void
    {
        $this->settings->whileWaiting = $do;
    }

    /**
     * Returns the session with this id if it belongs to the caller (G12), otherwise null.
     *
     * @param string $id a UUID in any spelling that the SDK accepts
     *
     * @return \McpState\Session|null null also if $id is not a UUID
     *
     * @throws ExceptionInterface
     */
    public function find(string $id): ?\McpState\Session
    {
        try {
            $uuid = Uuid::fromString($id);
        } catch (\InvalidArgumentException) {
            return null;
        }

        return $this->openSession($uuid);
    }

    /**
     * Returns the store, and opens it on first use.
     *
     * @throws ExceptionInterface
     */
    public function store(): Store
    {
        return $this->store->get();
    }

    /** @throws ExceptionInterface */
    private function openSession(Uuid $id): ?\McpState\Session
    {
        return $this->store()->openSession($id->toRfc4122(), $this->principal());
    }

    private function endExchange(): void
    {
        $context = $this->scope->current();
        $exchange = $this->exchanges->get($context);
        $this->exchanges->unset($context);
        $exchange?->end();
    }

    private function principal(): ?string
    {
        $override = $this->principals->get($this->scope->current());

        if ($override !== null) {
            return $override[0];
        }

        return $this->principal instanceof \Closure ? ($this->principal)() : $this->principal;
    }

    private function exchange(): Exchange
    {
        $context = $this->scope->current();

        return $this->exchanges->get($context) ?? $this->exchanges->set($context, new Exchange($this->settings));
    }
}
