<?php

declare(strict_types=1);

namespace McpState\Bench\Server;

use McpState\Example\State\Sessions;
use McpState\Example\State\SessionState;

/**
 * Sessions in plain PHP, with one directory per session.
 */
final class PlainSessions implements Sessions
{
    public function __construct(private readonly string $directory)
    {
    }

    public function create(): SessionState
    {
        $id = bin2hex(random_bytes(16));
        mkdir("$this->directory/$id", 0700, true);
        file_put_contents("$this->directory/$id/attributes", '[]');
        file_put_contents("$this->directory/$id/counter", '1000');

        return new PlainSession($id, "$this->directory/$id");
    }

    public function open(string $id, bool $streams): ?SessionState
    {
        $known = preg_match('/\A[0-9a-f]{32}\z/', $id) === 1 && is_file("$this->directory/$id/attributes");

        return $known ? new PlainSession($id, "$this->directory/$id") : null;
    }

    public function destroy(string $id): bool
    {
        if ($this->open($id, false) === null) {
            return false;
        }
        array_map(unlink(...), glob("$this->directory/$id/*"));

        return rmdir("$this->directory/$id");
    }
}
