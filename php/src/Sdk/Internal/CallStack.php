<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

/**
 * Which message of the client the SDK serves when it calls the session manager.
 *
 * The SDK's session interfaces do not say, so this reads the arguments of the functions that are calling. It knows
 * messages by their methods and names no class. Where it finds none, a call cannot be cancelled, and nothing else changes.
 *
 * @internal
 */
final class CallStack
{
    /** How far up the SDK has its list of messages when it resolves a session, with a decorated manager in between. */
    private const FRAMES = 6;

    /** The JSON-RPC id of the request whose handler runs in the present fiber: that of the fiber's outermost function. */
    public static function requestId(): int|string|null
    {
        $request = null;

        foreach (self::frames(0) as $frame) {
            foreach ($frame['args'] ?? [] as $argument) {
                if (\is_object($argument) && \method_exists($argument, 'getId') && \method_exists($argument, 'getMethod')) {
                    $request = $argument;
                }
            }
        }

        try {
            // Those further in are on their way to the client, and have no id yet.
            $id = $request?->getId();
        } catch (\Throwable) {
            $id = null;
        }

        return \is_int($id) || \is_string($id) ? $id : null;
    }

    /** @return list<int|string> ids of the requests that the messages cancel for which the SDK resolves a session */
    public static function cancelledIds(): array
    {
        foreach (self::frames(self::FRAMES) as $frame) {
            foreach ($frame['args'] ?? [] as $argument) {
                if (\is_array($argument) && \is_object($argument[0] ?? null)) {
                    return self::cancelledBy($argument);
                }
            }
        }

        return [];
    }

    /**
     * @param array<array-key, mixed> $messages
     *
     * @return list<int|string>
     */
    private static function cancelledBy(array $messages): array
    {
        $ids = [];

        foreach ($messages as $message) {
            $isCancellation = \is_object($message) && \method_exists($message, 'getMethod')
                && $message->getMethod() === 'notifications/cancelled';
            $id = $isCancellation ? $message->requestId ?? null : null;

            if (\is_int($id) || \is_string($id)) {
                $ids[] = $id;
            }
        }

        return $ids;
    }

    /** @return list<array<string, mixed>> the functions that are running, the innermost first; none where PHP may not say */
    private static function frames(int $limit): array
    {
        return \function_exists('debug_backtrace') ? \debug_backtrace(0, $limit) : [];
    }
}
