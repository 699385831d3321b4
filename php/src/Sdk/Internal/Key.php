<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

/**
 * The kinds of session key that the SDK uses, and where this library keeps the values of each kind.
 *
 * @internal
 */
enum Key
{
    /** The id of the next request to the client. The store generates it. */
    case RequestId;
    /** The outgoing messages. Each exchange has its own. */
    case Queue;
    /** The pending requests. The store keeps each of them with its owner. */
    case Pending;
    /** The client's response to a pending request. The store keeps it for the owner. */
    case Response;
    /** Values that concern only the client's request being served. They stay in memory and are never stored. */
    case Request;
    /** Any other key: an attribute of the session. */
    case Attribute;

    private const RESPONSES = '_mcp.responses.';

    public static function of(string $key): self
    {
        return match (true) {
            $key === '_mcp.request_id_counter' => self::RequestId,
            $key === '_mcp.outgoing_queue' => self::Queue,
            $key === '_mcp.pending_requests' => self::Pending,
            \str_starts_with($key, self::RESPONSES) => self::Response,
            Path::isWithin($key, '_mcp.active_request_meta'), self::isClassOfTheSdk($key) => self::Request,
            default => self::Attribute,
        };
    }

    /**
     * Returns the request id in `_mcp.responses.ID`; null if it is not an integer in canonical form, as all ids of the
     * server's requests are.
     */
    public static function responseId(string $key): ?int
    {
        $id = \substr($key, \strlen(self::RESPONSES));

        return (string) (int) $id === $id ? (int) $id : null;
    }

    /** Returns $key in a form for log messages. */
    public static function shown(string $key): string
    {
        return \substr((string) Value::encode($key), 0, 100);
    }

    /**
     * Tells whether $key names a class of the SDK or of a prefixed copy of it. One of the objects under such keys holds
     * a signing key.
     */
    private static function isClassOfTheSdk(string $key): bool
    {
        return \str_contains($key, '\\') && (\str_starts_with($key, Sdk::root()) || \str_contains($key, '\Mcp\Server\\'));
    }

    /** Tells whether the store accepts $key as the key of an attribute. */
    public static function isStorable(string $key): bool
    {
        return \strlen($key) <= 255 && \preg_match('/^[^.\p{Cc}]+(\.[^.\p{Cc}]+)*$/Du', $key) === 1;
    }
}
