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
 * Parallel requests of one session then keep their own answers, questions to the client come back to the tool that asked,
 * and nothing is written over. A tool that waits for the client sleeps until the answer comes; the SDK's loop does not
 * poll meanwhile.
 *
 * It takes the place of the SDK's session store *and* of its lock: do not give the builder a `setSessionLock()` besides,
 * which would only serve the requests of a session one after another.
 *
 * A manager serves one exchange at a time, or as many as its scope tells apart, and holds their owners: make one for
 * each PHP request, and in a long-lived process say with a scope how it serves requests.
 */
final class SessionManager implements SessionManagerInterface
{
    /** How often, in exchanges, expired sessions are collected; and how many at once. */
    private const COLLECT_ONE_IN = 100;
    private const COLLECT = 100;

    private readonly StoreSource $store;

    private readonly LoggerInterface $logger;

    private readonly Scope $scope;

    private readonly Settings $settings;

    /** @var PerContext<Exchange> */
    private readonly PerContext $exchanges;

    /** @var PerContext<string> what {@see serves()} said */
    private readonly PerContext $served;

    /** @var PerContext<array{?string}> what {@see actFor()} said */
    private readonly PerContext $principals;

    /** @var PerContext<Owner> who has the requests of a context in flight before its exchange says so */
    private readonly PerContext $holders;

    /**
     * @param Store|\Closure(): Store           $store       a store, or what opens it when it is first needed
     * @param int|null                          $ttl         milliseconds that a new session lives without being used;
     *                                                       null: the store's `ttl_ms`
     * @param int|null                          $lease       milliseconds that a silent exchange is kept whose process
     *                                                       died; null: the store's `lease_ms`
     * @param LoggerInterface|null              $logger      hears of discarded answers and of everything that fails;
     *                                                       null: warnings and errors go to PHP's `error_log`
     * @param bool                              $blocking    whether a stream that waits for the client sleeps in the
     *                                                       store, where the scope allows it, or polls as the SDK does
     * @param Scope|null                        $scope       how this process serves exchanges; null: {@see OneExchange}
     * @param (\Closure(): ?string)|string|null $principal   who is calling: sessions belong to whoever opened them, and
     *                                                       are not there for anybody else. See also {@see actFor()}
     * @param list<string>                      $collections keys whose elements are added and removed one by one,
     *                                                       besides `resource_subscriptions`
     * @param int|null                          $maxWaiting  how many exchanges of the store may wait for a client at
     *                                                       once: keep it below the number of PHP processes. A question
     *                                                       beyond it gets an error at once. Null: the store's
     *                                                       `max_waiting`
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
            throw new InvalidArgument("a maxWaiting of $maxWaiting is not valid: it must be 1 or more, or null for no limit");
        }

        $this->store = new StoreSource($store);
        $this->logger = $logger ?? new ErrorLog();
        $this->scope = $scope ?? new OneExchange();
        $this->exchanges = new PerContext();
        $this->principals = new PerContext();
        $this->served = new PerContext();
        $source = $this->store; // Exchanges must not keep the manager from its end.
        $this->settings = new Settings(
            $this->logger,
            $ttl,
            $lease,
            $blocking && $this->scope->mayBlock(),
            $this->scope->isOneStream(),
            ['resource_subscriptions', ...$collections],
            static fn (): WaitingRoom => new WaitingRoom($source->get(...), $maxWaiting),
        );
        $this->holders = new PerContext();
        [$holders, $scope] = [$this->holders, $this->scope];
        $this->settings->takeOver = static fn (int|string $id) => $holders->get($scope->current())?->finishRequest($id);
    }

    /**
     * A manager on the store that $dsn names; it is opened when it is first needed.
     *
     * @param string|null                       $dsn       null: the environment variable `MCP_STATE_DSN`, else the ini
     *                                                     setting `mcp_state.dsn`
     * @param (\Closure(): ?string)|string|null $principal
     * @param list<string>                      $collections
     *
     * The other parameters are those of the constructor.
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
     * A new session. It is in the store at once, and only this creates one.
     *
     * @throws \McpState\Exception\LimitExceeded when the store or the principal has too many sessions
     * @throws ExceptionInterface
     */
    public function create(): Session
    {
        $exchange = $this->exchange();

        try {
            $session = $this->store()->createSession(null, $this->settings->ttlMs, $this->principal());
        } catch (ExceptionInterface $e) {
            $this->logger->error("mcp-state: no session for a client: {$e->getMessage()}", ['exception' => $e]);
            $exchange->refusal = $e;

            throw $e;
        }

        $exchange->resolve($session->id);

        return new Session(Uuid::fromString($session->id), $exchange->open($session->id, $session), $exchange, true);
    }

    /** A session object; where there is no such session it is empty, and its `save()` says false. Never throws. */
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
                $share->failed('a session could not be opened', $e);
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
     * Whether there is such a session, and it is not somebody else's.
     *
     * @throws \Throwable when the store cannot be asked: since 0.9 the exception for which the SDK answers HTTP 503. A
     *                    "no" would make the client start over
     */
    public function exists(Uuid $id): bool
    {
        $exchange = $this->exchange();
        $sessionId = $id->toRfc4122();

        try {
            $session = $this->openSession($id);
        } catch (ExceptionInterface $e) {
            $this->logger->error("mcp-state: the store cannot be asked: {$e->getMessage()}", ['exception' => $e]);
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
     * Ends a session for good: what still runs on it ends with an error. False when there was none.
     *
     * @throws ExceptionInterface
     */
    public function destroy(Uuid $id): bool
    {
        return $this->store()->destroySession($id->toRfc4122(), $this->principal());
    }

    /**
     * Ends what a request of the client waits for: the question that its tool has asked ends with the JSON-RPC error
     * -32800, in whatever process it waits. `notifications/cancelled` does this by itself; a server that hears of a
     * cancellation in another way calls it. Never throws.
     *
     * @param int|string $requestId as the client sent it: `1` is not `"1"`
     *
     * @return bool whether one such request waits; of several with this id none is touched
     */
    public function cancel(Uuid $id, int|string $requestId): bool
    {
        try {
            $outcome = $this->openSession($id)?->cancelRequest($requestId);
        } catch (ExceptionInterface $e) {
            $this->logger->error("mcp-state: a request could not be cancelled: {$e->getMessage()}", ['exception' => $e]);

            return false;
        }

        if ($outcome === CancelOutcome::Ambiguous) {
            $this->logger->warning('mcp-state: a request is not cancelled: several with its id wait for the client');
        }

        return $outcome === CancelOutcome::Cancelled;
    }

    /**
     * Says that $owner has the client's requests of the present context in flight, until an exchange of this manager says so
     * itself: so that each is in flight once, and can be cancelled.
     *
     * @internal
     */
    public function holdRequests(?Owner $owner): void
    {
        $context = $this->scope->current();
        $owner === null ? $this->holders->unset($context) : $this->holders->set($context, $owner);
    }

    /** The SDK's first call of each exchange. Now and then it collects expired sessions. */
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
                $this->logger->error("mcp-state: sessions could not be collected: {$e->getMessage()}", ['exception' => $e]);
            }
        }
    }

    /**
     * Ends the exchange that runs now, and what {@see actFor()} said: nothing of it will be delivered any more. In
     * long-lived processes, best called when the response has been sent; else the next exchange of the same scope ends it.
     */
    public function release(): void
    {
        $this->endExchange();
        $this->principals->unset($this->scope->current());
    }

    /**
     * From here on $principal is calling in the present context, whatever the constructor was told; null: nobody in
     * particular.
     */
    public function actFor(?string $principal): void
    {
        $this->principals->set($this->scope->current(), [$principal]);
    }

    /**
     * Says what the next exchange of the present context serves, for whoever looks at the store (`mcp-state show`): the
     * JSON-RPC messages of the client. Our middleware and our transport do.
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
     * Why the store refused to let the client's message be served at all, told once; null when it did not. Whatever the
     * SDK made of it, the client should hear HTTP 503 with Retry-After. Our middleware, transport, bundle and module ask.
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
     * Runs $do at least once a second while a stream sleeps until the client answers: for keep-alives. What it throws ends
     * the stream.
     *
     * @param (\Closure(): mixed)|null $do
     */
    public function whileWaiting(?\Closure $do): void
    {
        $this->settings->whileWaiting = $do;
    }

    /**
     * The session with this id in the store, if it belongs to whoever is calling.
     *
     * @param string $id in any spelling of a UUID that the SDK takes, as a client may send it
     *
     * @return \McpState\Session|null null also where the id is no UUID: the SDK has no such sessions
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

    /** @throws ExceptionInterface */
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
        $told = $this->principals->get($this->scope->current());

        if ($told !== null) {
            return $told[0];
        }

        return $this->principal instanceof \Closure ? ($this->principal)() : $this->principal;
    }

    private function exchange(): Exchange
    {
        $context = $this->scope->current();

        return $this->exchanges->get($context) ?? $this->exchanges->set($context, new Exchange($this->settings));
    }
}
