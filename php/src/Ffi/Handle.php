<?php

declare(strict_types=1);

namespace McpState\Ffi;

use FFI\CData;

/**
 * What the library gave and takes back when nobody uses it any more.
 *
 * At the end of a request PHP calls destructors in the order in which objects were made, whoever still uses them. Then a new
 * object takes over, whose destructor comes after those of all others. What is used even later meets NULL, which the library
 * refuses.
 *
 * @internal
 */
final class Handle
{
    /** @var list<self> */
    private static array $last = [];

    /** @param string $kind `engine` or `session` */
    public function __construct(
        private readonly Library $library,
        private readonly string $kind,
        public CData $pointer,
        private readonly ?self $takesOverFrom = null,
    ) {
    }

    public function __destruct()
    {
        if ($this->takesOverFrom === null && RequestEnd::hasBegun()) {
            self::$last[] = new self($this->library, $this->kind, $this->pointer, $this);

            return;
        }

        $freed = $this->takesOverFrom ?? $this;
        $this->library->free($this->kind, $this->pointer);
        $freed->pointer = $this->library->new("mcp_state_$this->kind *");
    }

    private function __clone()
    {
    }
}
