<?php

declare(strict_types=1);

namespace McpState\Sdk;

use Mcp\Schema\JsonRpc\Notification;
use Mcp\Server\Subscription\NotificationBusInterface;
use McpState\Exception\ExceptionInterface;
use McpState\Internal\StoreSource;
use McpState\Sdk\Internal\ErrorLog;
use McpState\Sdk\Internal\Sdk;
use McpState\Store;
use Psr\Log\LoggerInterface;

/**
 * Carries notifications to the `subscriptions/listen` streams of all processes (protocol revision 2026-07-28):
 *
 *     $server = Server::builder()->setNotificationBus(NotificationBus::open('shm://shop'))
 *
 * Notifications have numbers that rise by one, whoever publishes: every reader gets all of them, once, in the same order.
 * The store keeps the newest (`max_topic_messages`, `max_topic_bytes`); a reader that fell further behind goes on with
 * what is there, and the logger is told how many it missed.
 */
final class NotificationBus implements NotificationBusInterface
{
    /** How many notifications are read at once. */
    private const BATCH = 500;

    private readonly StoreSource $store;

    private readonly LoggerInterface $logger;

    /**
     * @param Store|\Closure(): Store $store a store, or what opens it when it is first needed
     * @param string                  $topic servers with different topics do not hear of each other
     */
    public function __construct(
        #[\SensitiveParameter] Store|\Closure $store,
        private readonly string $topic = 'mcp.notifications',
        ?LoggerInterface $logger = null,
    ) {
        $this->store = new StoreSource($store);
        $this->logger = $logger ?? new ErrorLog();
    }

    /** @param string|null $dsn null: the environment variable `MCP_STATE_DSN`, else the ini setting `mcp_state.dsn` */
    public static function open(
        #[\SensitiveParameter] ?string $dsn = null,
        string $topic = 'mcp.notifications',
        ?LoggerInterface $logger = null,
    ): self {
        return new self(static fn (): Store => Store::open($dsn), $topic, $logger);
    }

    /**
     * @throws ExceptionInterface when it could not be published
     * @throws \JsonException when the notification cannot become JSON
     */
    public function publish(Notification $notification): void
    {
        $this->store->get()->publish($this->topic, \json_encode($notification, \JSON_THROW_ON_ERROR));
    }

    /** @throws ExceptionInterface */
    public function cursor(): int
    {
        return $this->store->get()->cursor($this->topic);
    }

    /**
     * A store that cannot be asked gives nothing and leaves the cursor where it is: an exception would end the stream.
     *
     * @return array{list<Notification>, int}
     */
    public function since(int $cursor): array
    {
        $notifications = [];

        try {
            do {
                $entries = $this->store->get()->since($this->topic, $cursor, self::BATCH);
                $cursor = $entries->cursor;

                if ($entries->missed > 0) {
                    $this->logger->warning("mcp-state: a reader of \"$this->topic\" missed $entries->missed notifications");
                }

                foreach ($entries->messages as $message) {
                    $notifications = [...$notifications, ...$this->decoded($message->message)];
                }
            } while (\count($entries->messages) === self::BATCH);
        } catch (ExceptionInterface $e) {
            $this->logger->error("mcp-state: notifications could not be read: {$e->getMessage()}", ['exception' => $e]);
        }

        return [$notifications, $cursor];
    }

    /** @return list<Notification> */
    private function decoded(string $message): array
    {
        $factory = Sdk::find('JsonRpc\MessageFactory') ?? throw new \LogicException('the SDK has no JsonRpc\MessageFactory');
        $notifications = [];

        try {
            foreach ($factory::make()->create($message) as $decoded) {
                if ($decoded instanceof Notification) {
                    $notifications[] = $decoded;
                }
            }
        } catch (\Exception $e) {
            $this->logger->warning("mcp-state: a notification could not be read: {$e->getMessage()}", ['exception' => $e]);
        }

        return $notifications;
    }
}
