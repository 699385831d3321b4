<?php

declare(strict_types=1);

namespace McpState\Ffi;

/**
 * The owners attached in this PHP request, which end with it at the latest: after all shutdown functions, however the request
 * ends, or, when one of these calls `exit`, with the objects. A process that was forked inherits the list, but not the
 * owners.
 *
 * @internal
 */
final class RequestEnd
{
    private static ?self $request = null;

    private bool $hasBegun = false;

    /** @var array<string, array{int, Session}> process and session by token */
    private array $owners = [];

    private function __construct()
    {
        \register_shutdown_function(function (): void {
            $this->hasBegun = true;
            // Registered while shutdown functions run, it comes after those that are there.
            \register_shutdown_function($this->end(...));
        });
    }

    public function __destruct()
    {
        $this->hasBegun = true;
        $this->end();
    }

    /** To be called before anything of a request is made, so that its destructor, too, is among the first. */
    public static function await(): void
    {
        self::$request ??= new self();
    }

    /** Whether destructors may run while their objects are still in use. */
    public static function hasBegun(): bool
    {
        return self::$request?->hasBegun ?? false;
    }

    public static function attached(string $token, Session $session): void
    {
        self::await();
        self::$request->owners[$token] = [(int) \getmypid(), $session];
    }

    public static function detached(string $token): void
    {
        if (self::$request !== null) {
            unset(self::$request->owners[$token]);
        }
    }

    private function end(): void
    {
        $owners = $this->owners;
        $this->owners = [];

        foreach ($owners as $token => [$process, $session]) {
            if ($process === \getmypid()) {
                try {
                    $session->detach((string) $token);
                } catch (Failure) {
                    // Nobody is left to be told; the lease ends it.
                }
            }
        }
    }
}
