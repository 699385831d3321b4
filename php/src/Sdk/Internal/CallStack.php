<?php

declare(strict_types=1);

namespace McpState\Sdk\Internal;

/**
 * Finds the client's message that the SDK serves when it calls the session manager.
 *
 * The SDK's session interfaces do not pass the message, so this class reads the arguments of the calling functions. It
 * recognises messages by their methods and refers to no class of the SDK. If it finds no message, the call cannot be
 * cancelled, and everything else works.
 *
 * @internal
 */
final class CallStack
{
    /** The most stack frames between here and the SDK's list of messages, with one decorator around the manager. */
    private const FRAMES = 6;

    /**
     * Returns the JSON-RPC id of the request whose handler runs in the present fiber. The outermost request on the
     * stack is that one.
     */
    public static function requestId(): int|string|null
    {
        $request = null;

        foreach (self::frames(0) as $frame) {
            foreach ($frame['args'] ?? [] as $argument) {
                $isObject = \is_object($argument);

                if ($isObject && \method_exists($argument, 'getId') && \method_exists($argument, 'getMethod')) {
                    $request = $argument;
                }
            }
        }

        try {
            // The requests of inner frames go to the client, and may have no id yet.
            $id = $request?->getId();
        } catch (\Throwable) {
            $id = null;
        }

        return \is_int($id) || \is_string($id) ? $id : null;
    }

    /**
     * Returns the ids of the requests that the messages cancel for which the SDK resolves a session.
     *
     * @return list<int|string>
     */
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

    /**
     * @return list<array<string, mixed>> the stack frames, the innermost first; empty if the host disables
     *         `debug_backtrace`
     */
    private static function frames(int $limit): array
    {
        return \function_exists('debug_backtrace') ? \debug_backtrace(0, $limit) : [];
    }
}
