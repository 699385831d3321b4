<?php

declare(strict_types=1);

namespace McpState\Ffi;

use FFI\CData;
use FFI\CType;
use McpState\Exception\BackendMissing;

/**
 * The C library as loaded by PHP's FFI. include/mcp_state.h describes its functions.
 *
 * All code that uses FFI is in this namespace, because `ffi.enable=preload` allows FFI only in code that
 * `opcache.preload` has compiled (ffi-preload.php). Each call has its own memory for its results until it has read
 * them, because a signal handler may make another call before that.
 *
 * @internal
 */
final class Library
{
    /** The `MCP_STATE_ABI_VERSION` that this class requires. */
    private const ABI_VERSION = 1;

    private const HEADER = __DIR__ . '/../../mcp_state.ffi.h';

    private static ?self $loaded = null;

    /** @var array<string, CType> */
    private array $types = [];

    /** @var list<Memory> the free memory */
    private array $memory = [];

    private function __construct(public readonly \FFI $c)
    {
    }

    /**
     * Returns the library from the scope that `ffi.preload` created, or without one loads it from its file.
     *
     * @throws BackendMissing if the library cannot be loaded; the message gives the reason
     */
    public static function load(): self
    {
        RequestEnd::register();

        return self::$loaded ??= new self(self::preloaded() ?? self::fromFile());
    }

    /** Allocates zeroed memory of this type. An `int64_t[1]` is passed as a pointer and read as `[0]`. */
    public function new(string $type): CData
    {
        return $this->c->new($this->types[$type] ??= $this->c->type($type)) ?? throw new \Error("no memory for $type");
    }

    /**
     * Returns a pointer to a copy of $bytes. The pointer is valid as long as the caller keeps the copy.
     *
     * @param CData|null $keep receives the copy
     */
    public function copy(string $bytes, ?CData &$keep): CData
    {
        $keep = $this->c->new('char[' . \max(1, \strlen($bytes)) . ']');
        \FFI::memcpy($keep, $bytes, \strlen($bytes));

        return $this->c->cast('char *', \FFI::addr($keep));
    }

    /** Returns a `const int64_t *`, which is NULL for null. */
    public function nullable(?int $number): CData
    {
        if ($number === null) {
            return $this->new('int64_t *');
        }

        $pointer = $this->new('int64_t[1]');
        $pointer[0] = $number;

        return $pointer;
    }

    /**
     * Takes memory for the results of one call. Frequent calls use this instead of {@see call()}. A signal handler and
     * the call that it interrupts get different memory.
     */
    public function acquire(): Memory
    {
        return \array_pop($this->memory) ?? new Memory($this->new('mcp_state_error[1]'));
    }

    /** Returns memory whose contents have been read, for use by the next call. */
    public function release(Memory $memory): void
    {
        $this->memory[] = $memory;
    }

    /** Reads the failure of the call that used this memory, and releases the memory. */
    public function failure(Memory $memory): Failure
    {
        $failure = self::readError($memory->error);
        $this->release($memory);

        return $failure;
    }

    /**
     * Calls a function that returns a status, and appends a pointer for the error as its last argument. A string
     * becomes a pointer and a length, and null becomes an absent text.
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
            throw self::readError($error);
        }
    }

    private static function readError(CData $error): Failure
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

    /** Returns the bytes of the buffer in $out and frees the buffer; null if there is no buffer. */
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
     * Returns the messages in $out and frees them.
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
     * Returns the pending requests in $out and frees them.
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
     * Returns the ids in $out and frees them.
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

    /**
     * Frees the object behind a handle.
     *
     * @param string $kind `engine` or `session`
     */
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

            return null; // `ffi.preload` lists only headers of other libraries.
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
                . 'set MCP_STATE_LIBRARY in the environment, or mcp_state.library in php.ini, to its path',
                0,
                $e,
            );
        }
    }

    private static function restricted(\FFI\Exception $e): void
    {
        if (\str_contains($e->getMessage(), 'restricted')) {
            throw new BackendMissing(
                'ffi.enable=' . \ini_get('ffi.enable') . ' does not allow FFI here; with ffi.enable=preload, set '
                . 'opcache.preload to ' . \dirname(__DIR__, 2) . '/ffi-preload.php',
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

    /**
     * Returns the argument for `dlopen`: the configured file, or the file of this package, or a name that ld.so
     * resolves.
     */
    private static function file(): string
    {
        foreach ([\getenv('MCP_STATE_LIBRARY'), \get_cfg_var('mcp_state.library')] as $configured) {
            if (\is_string($configured) && $configured !== '') {
                return $configured;
            }
        }

        $suffix = \PHP_OS_FAMILY === 'Darwin' ? 'dylib' : 'so';
        $package = \dirname(__DIR__, 2);

        foreach (["$package/lib/libmcp_state.$suffix", \dirname($package) . "/build/libmcp_state.$suffix"] as $file) {
            // A directory outside of `open_basedir` counts as absent; PHP's warning would not help.
            if (@\is_file($file)) {
                return $file;
            }
        }

        return $suffix === 'so' ? 'libmcp_state.so.1' : "libmcp_state.$suffix";
    }
}
