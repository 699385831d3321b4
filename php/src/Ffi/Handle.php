<?php

declare(strict_types=1);

namespace McpState\Ffi;

use FFI\CData;

/**
 * A pointer to an object of the C library. The destructor of the handle frees the object.
 *
 * At the end of a request PHP calls the destructors in the order in which the objects were created, even if other
 * objects still use them. A handle that is destroyed then passes its pointer to a second handle, whose destructor runs
 * after all the others. After that the pointer is NULL, which the C library refuses.
 *
 * @internal
 */
final class Handle
{
    /** @var list<self> */
    private static array $deferred = [];

    /** @param string $kind `engine` or `session` */
    public function __construct(
        private readonly Library $library,
        private readonly string $kind,
        public CData $pointer,
        private readonly ?self $original = null,
    ) {
    }

    public function __destruct()
    {
        if ($this->original === null && RequestEnd::hasBegun()) {
            self::$deferred[] = new self($this->library, $this->kind, $this->pointer, $this);

            return;
        }

        $freed = $this->original ?? $this;
        $this->library->free($this->kind, $this->pointer);
        $freed->pointer = $this->library->new("mcp_state_$this->kind *");
    }

    private function __clone()
    {
    }
}
