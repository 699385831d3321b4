<?php

declare(strict_types=1);

namespace McpState\Example\State;

/** The store of the sessions. */
interface Sessions
{
    /** Creates a session, for `initialize`. */
    public function create(): SessionState;

    /**
     * Returns the session $id for the current HTTP request.
     *
     * @param bool $streams whether the reply to the request is an event stream
     * @return ?SessionState null if the session does not exist: HTTP 404
     */
    public function open(string $id, bool $streams): ?SessionState;

    /** Ends the session $id; false if it does not exist. */
    public function destroy(string $id): bool;
}
