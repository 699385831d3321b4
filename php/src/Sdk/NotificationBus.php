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
 * Delivers notifications to the `subscriptions/listen` streams of all processes (protocol revision 2026-07-28):
 *
 *     $server = Server::builder()->setNotificationBus(NotificationBus::open('shm://shop'))
 *
 * The numbers of the notifications rise by one, whichever process publishes. Every reader receives each notification
 * once, in the same order. The store keeps only the newest (`max_topic_messages`, `max_topic_bytes`, G10). A reader
 * that is too slow continues with the oldest stored one, and the logger receives the number of missed notifications.
 */
final class NotificationBus implements NotificationBusInterface
{
    /** The number of notifications in one read. */
    private const BATCH = 500;

    private readonly StoreSource $store;

    private readonly LoggerInterface $logger;

    /**
     * @param Store|\Closure(): Store $store  a store, or a closure that opens it on first use
     * @param string                  $topic  the topic on the bus; servers with different topics do not receive each
     *                                        other's notifications
     * @param LoggerInterface|null    $logger null: warnings and errors go to PHP's `error_log`
     */
    public function __construct(
        #[\SensitiveParameter] Store|\Closure $store,
        private readonly string $topic = 'mcp.notifications',
        ?LoggerInterface $logger = null,
    ) {
        $this->store = new StoreSource($store);
        $this->logger = $logger ?? new ErrorLog();
    }

    /**
     * Creates a bus on the store that $dsn names, which is opened on first use.
     *
     * @param string|null          $dsn    null: the environment variable `MCP_STATE_DSN`, or without it the ini setting
     *                                     `mcp_state.dsn`
     * @param string               $topic  the topic on the bus; servers with different topics do not receive each
     *                                     other's notifications
     * @param LoggerInterface|null $logger null: warnings and errors go to PHP's `error_log`
     */
    public static function open(
        #[\SensitiveParameter] ?string $dsn = null,
        string $topic = 'mcp.notifications',
        ?LoggerInterface $logger = null,
    ): self {
        return new self(static fn (): Store => Store::open($dsn), $topic, $logger);
    }

    /**
     * Publishes a notification to all readers of the topic.
     *
     * @throws ExceptionInterface if the store fails
     * @throws \JsonException if JSON cannot express the notification
     */
    public function publish(Notification $notification): void
    {
        $this->store->get()->publish($this->topic, \json_encode($notification, \JSON_THROW_ON_ERROR));
    }

    /**
     * Returns the number of the newest notification, where a new reader starts.
     *
     * @throws ExceptionInterface
     */
    public function cursor(): int
    {
        return $this->store->get()->cursor($this->topic);
    }

    /**
     * Returns the notifications after $cursor, and the new cursor. If the store fails, the result is empty with the
     * same cursor, because an exception would end the stream.
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
            $this->logger->error("mcp-state: cannot read notifications: {$e->getMessage()}", ['exception' => $e]);
        }

        return [$notifications, $cursor];
    }

    /** @return list<Notification> */
    private function decoded(string $message): array
    {
        $factory = Sdk::find('JsonRpc\MessageFactory')
            ?? throw new \LogicException('the SDK has no JsonRpc\MessageFactory');
        $notifications = [];

        try {
            foreach ($factory::make()->create($message) as $decoded) {
                if ($decoded instanceof Notification) {
                    $notifications[] = $decoded;
                }
            }
        } catch (\Exception $e) {
            $this->logger->warning("mcp-state: cannot decode a notification: {$e->getMessage()}", ['exception' => $e]);
        }

        return $notifications;
    }
}
