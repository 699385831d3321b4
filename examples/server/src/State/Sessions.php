<?php

declare(strict_types=1);

namespace McpState\Example\State;

/**
 * Where the sessions live.
 */
interface Sessions
{
    /** A new session, for `initialize`. */
    public function create(): SessionState;

    /**
     * The session $id as the HTTP request now being served sees it.
     *
     * @param bool $streams whether that request is answered with an event stream
     * @return ?SessionState null when there is none: HTTP 404
     */
    public function open(string $id, bool $streams): ?SessionState;

    /** Ends the session $id; false when there was none. */
    public function destroy(string $id): bool;
}
