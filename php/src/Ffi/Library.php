<?php

declare(strict_types=1);

namespace McpState\Ffi;

use FFI\CData;
use FFI\CType;
use McpState\Exception\BackendMissing;

/**
 * The C library as PHP's FFI has it (include/mcp_state.h says what its functions do).
 *
 * Everything that touches FFI is in this namespace: under `ffi.enable=preload` only code that `opcache.preload` compiled may
 * (ffi-preload.php). Each call has memory of its own for its results until they are read, since a signal handler may make
 * another one before.
 *
 * @internal
 */
final class Library
{
    /** The `MCP_STATE_ABI_VERSION` this class is written for. */
    private const ABI_VERSION = 1;

    private const HEADER = __DIR__ . '/../../mcp_state.ffi.h';

    private static ?self $loaded = null;

    /** @var array<string, CType> */
    private array $types = [];

    /** @var list<Memory> what no call uses now */
    private array $memory = [];

    private function __construct(public readonly \FFI $c)
    {
    }

    /**
     * The library, from the scope that `ffi.preload` made, else from its file.
     *
     * @throws BackendMissing that says why not
     */
    public static function load(): self
    {
        RequestEnd::await();

        return self::$loaded ??= new self(self::preloaded() ?? self::fromFile());
    }

    /** Memory for $type, zeroed: `int64_t[1]` is passed as a pointer and read as `[0]`. */
    public function new(string $type): CData
    {
        return $this->c->new($this->types[$type] ??= $this->c->type($type)) ?? throw new \Error("no memory for $type");
    }

    /** A pointer to a copy of $bytes, which $keep must outlive. @param CData|null $keep set to the copy */
    public function copy(string $bytes, ?CData &$keep): CData
    {
        $keep = $this->c->new('char[' . \max(1, \strlen($bytes)) . ']');
        \FFI::memcpy($keep, $bytes, \strlen($bytes));

        return $this->c->cast('char *', \FFI::addr($keep));
    }

    /** A `const int64_t *`: NULL for null. */
    public function optional(?int $number): CData
    {
        if ($number === null) {
            return $this->new('int64_t *');
        }

        $pointer = $this->new('int64_t[1]');
        $pointer[0] = $number;

        return $pointer;
    }

    /**
     * Memory for the results of a call that is made often, and so without {@see call()}. Of a signal handler and what it
     * interrupts each gets its own.
     */
    public function memory(): Memory
    {
        return \array_pop($this->memory) ?? new Memory($this->new('mcp_state_error[1]'));
    }

    /** Takes memory back whose contents have been read. */
    public function reuse(Memory $memory): void
    {
        $this->memory[] = $memory;
    }

    /** What a call with this memory says of its failure. */
    public function failure(Memory $memory): Failure
    {
        $failure = self::told($memory->error);
        $this->reuse($memory);

        return $failure;
    }

    /**
     * Calls a function that returns a status, with room for an error as its last argument. A string is passed as the pair of
     * pointer and length that the library takes for a text, and null as an absent text.
     *
     * @throws Failure
     */
    public function call(string $function, #[\SensitiveParameter] CData|string|int|null ...$arguments): void
    {
        $passed = [];

        foreach ($arguments as $argument) {
            $passed[] = $argument;

            if (\is_string($argument)) {
                $passed[] = \strlen($argument);
            } elseif ($argument === null) {
                $passed[] = 0;
            }
        }

        $passed[] = $error = $this->new('mcp_state_error[1]');

        if ($this->c->{$function}(...$passed) !== 0) {
            throw self::told($error);
        }
    }

    private static function told(CData $error): Failure
    {
        $error = $error[0];

        return new Failure(
            \FFI::string($error->text),
            $error->status,
            \FFI::string($error->limit),
            $error->maximum,
            $error->actual,
        );
    }

    /** The bytes of the buffer that $out received, which is freed; null when it received none. */
    public function text(CData $out): ?string
    {
        $buffer = $out[0];

        if ($buffer === null) {
            return null;
        }

        $text = \FFI::string($this->c->mcp_state_buffer_data($buffer), $this->c->mcp_state_buffer_len($buffer));
        $this->c->mcp_state_buffer_free($buffer);

        return $text;
    }

    /**
     * The messages that $out received, which are freed.
     *
     * @return list<array{int, string, string}> number, text, context
     */
    public function messages(CData $out): array
    {
        $list = $out[0];
        $messages = [];

        for ($i = 0; ($message = $this->c->mcp_state_messages_at($list, $i)) !== null; ++$i) {
            $messages[] = [
                $message->number,
                \FFI::string($message->text, $message->text_len),
                \FFI::string($message->context, $message->context_len),
            ];
        }

        $this->c->mcp_state_messages_free($list);

        return $messages;
    }

    /**
     * The pending requests that $out received, which are freed.
     *
     * @return list<array{int, int, int, string}> id, state, milliseconds left, method
     */
    public function requests(CData $out): array
    {
        $list = $out[0];
        $requests = [];

        for ($i = 0; ($request = $this->c->mcp_state_requests_at($list, $i)) !== null; ++$i) {
            $requests[] = [
                $request->id,
                $request->state,
                $request->left_ms,
                \FFI::string($request->method, $request->method_len),
            ];
        }

        $this->c->mcp_state_requests_free($list);

        return $requests;
    }

    /**
     * The ids that $out received, which are freed.
     *
     * @return list<int>
     */
    public function ids(CData $out): array
    {
        $list = $out[0];
        $data = $this->c->mcp_state_ids_data($list);
        $ids = [];

        for ($i = 0, $count = $this->c->mcp_state_ids_len($list); $i < $count; ++$i) {
            $ids[] = $data[$i];
        }

        $this->c->mcp_state_ids_free($list);

        return $ids;
    }

    /** Frees a handle: an `engine` or a `session`. */
    public function free(string $kind, CData $handle): void
    {
        $this->c->{"mcp_state_{$kind}_free"}($handle);
    }

    private static function preloaded(): ?\FFI
    {
        if (!\extension_loaded('ffi')) {
            throw new BackendMissing('the PHP extension ffi is not loaded');
        }

        if ((string) \ini_get('ffi.preload') === '') {
            return null;
        }

        try {
            $c = \FFI::scope('mcp_state');
        } catch (\FFI\Exception $e) {
            self::restricted($e);

            return null; // ffi.preload names other headers
        }

        self::check($c->mcp_state_abi_version(), 'the library of ffi.preload');

        return $c;
    }

    private static function fromFile(): \FFI
    {
        $file = self::file();

        try {
            $version = \FFI::cdef('uint32_t mcp_state_abi_version(void);', $file)->mcp_state_abi_version();
            self::check($version, $file);

            return \FFI::cdef((string) \file_get_contents(self::HEADER), $file);
        } catch (\FFI\Exception $e) {
            self::restricted($e);

            throw new BackendMissing(
                "the C library of mcp-state cannot be used from $file ({$e->getMessage()}); "
                . 'MCP_STATE_LIBRARY in the environment, or mcp_state.library in php.ini, names the file',
                0,
                $e,
            );
        }
    }

    private static function restricted(\FFI\Exception $e): void
    {
        if (\str_contains($e->getMessage(), 'restricted')) {
            throw new BackendMissing(
                'ffi.enable=' . \ini_get('ffi.enable') . ' does not allow FFI here; with ffi.enable=preload, let '
                . 'opcache.preload name ' . \dirname(__DIR__, 2) . '/ffi-preload.php',
                0,
                $e,
            );
        }
    }

    private static function check(int $found, string $where): void
    {
        if ($found !== self::ABI_VERSION) {
            throw new BackendMissing(
                "$where has ABI version $found, but this library needs " . self::ABI_VERSION
                . '; upgrade the older of the two'
            );
        }
    }

    /** What `dlopen` is given: a file that was named, the one of this package, else what ld.so finds. */
    private static function file(): string
    {
        foreach ([\getenv('MCP_STATE_LIBRARY'), \get_cfg_var('mcp_state.library')] as $named) {
            if (\is_string($named) && $named !== '') {
                return $named;
            }
        }

        $suffix = \PHP_OS_FAMILY === 'Darwin' ? 'dylib' : 'so';
        $package = \dirname(__DIR__, 2);

        foreach (["$package/lib/libmcp_state.$suffix", \dirname($package) . "/build/libmcp_state.$suffix"] as $file) {
            // A directory outside of open_basedir is as good as none.
            if (@\is_file($file)) {
                return $file;
            }
        }

        return $suffix === 'so' ? 'libmcp_state.so.1' : "libmcp_state.$suffix";
    }
}
