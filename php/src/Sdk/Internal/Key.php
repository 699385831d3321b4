<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

/**
 * What the SDK keeps under a session key, and so where it lives here.
 *
 * @internal
 */
enum Key
{
    /** The number of the next request to the client: the store counts. */
    case RequestId;
    /** Messages to the client: each exchange has its own. */
    case Queue;
    /** Requests that wait for the client: in the store, each with its owner. */
    case Pending;
    /** The client's answer to one of them: in the store, for the owner. */
    case Response;
    /** What concerns the client's request being served and nobody else: in memory, never stored. */
    case Request;
    /** Everything else: an attribute of the session. */
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

    /** The request id in `_mcp.responses.ID`; null when it is none that a server gave: those are plain integers. */
    public static function responseId(string $key): ?int
    {
        $id = \substr($key, \strlen(self::RESPONSES));

        return (string) (int) $id === $id ? (int) $id : null;
    }

    /** $key as a log shows it. */
    public static function shown(string $key): string
    {
        return \substr((string) Value::encode($key), 0, 100);
    }

    /** Whether $key names a class of the SDK, or of a prefixed copy of it: its objects, and one of them holds a signing key. */
    private static function isClassOfTheSdk(string $key): bool
    {
        return \str_contains($key, '\\') && (\str_starts_with($key, Sdk::root()) || \str_contains($key, '\Mcp\Server\\'));
    }

    /** Whether the store can hold an attribute of this name. */
    public static function isStorable(string $key): bool
    {
        return \strlen($key) <= 255 && \preg_match('/^[^.\p{Cc}]+(\.[^.\p{Cc}]+)*$/Du', $key) === 1;
    }
}
