<?php

declare(strict_types=1);

namespace McpState\Ffi;

use McpState\Internal\FailureKind;

/**
 * The owners attached in this PHP request, which this class detaches when the request ends.
 *
 * They end after all shutdown functions, however the request ends. If a shutdown function calls `exit`, they end when
 * PHP destroys the objects. A forked process inherits the list, but does not own the owners in it.
 *
 * @internal
 */
final class RequestEnd
{
    private static ?self $request = null;

    /** The C library of the system, for `getpid`. */
    private static ?\FFI $c = null;

    private bool $hasBegun = false;

    /** @var array<string, array{int, Session}> process id and session by owner token */
    private array $owners = [];

    /** The size of the list at which ended owners are removed from it: the request of a worker may never end. */
    private int $sweepAt = 64;

    private function __construct()
    {
        \register_shutdown_function(function (): void {
            $this->hasBegun = true;
            // A function that is registered while shutdown functions run is called after all the others.
            \register_shutdown_function($this->end(...));
        });
    }

    public function __destruct()
    {
        $this->hasBegun = true;
        $this->end();
    }

    /**
     * Registers the end of this request. It must be called before the request creates other objects, so that the
     * destructor of this one runs before theirs.
     */
    public static function register(): void
    {
        self::$request ??= new self();
    }

    /** Tells whether PHP may now call destructors of objects that other objects still use. */
    public static function hasBegun(): bool
    {
        return self::$request?->hasBegun ?? false;
    }

    public static function attached(string $token, Session $session): void
    {
        self::register();
        $request = self::$request;

        if (\count($request->owners) >= $request->sweepAt) {
            $isAlive = static fn (array $owner, string|int $token): bool =>
                $owner[0] === self::pid() && !self::hasEnded($owner[1], (string) $token);
            $request->owners = \array_filter($request->owners, $isAlive, \ARRAY_FILTER_USE_BOTH);
            $request->sweepAt = \max(64, 2 * \count($request->owners));
        }

        $request->owners[$token] = [self::pid(), $session];
    }

    private static function hasEnded(Session $session, string $token): bool
    {
        try {
            $session->pending($token);
        } catch (Failure $failure) {
            $kind = FailureKind::tryFrom($failure->getCode());

            return $kind === FailureKind::SessionNotFound || $kind === FailureKind::OwnerExpired;
        }

        return false;
    }

    /** Returns the id of this process. It comes from the C library if the host disables `getmypid`. */
    private static function pid(): int
    {
        if (\function_exists('getmypid')) {
            return (int) \getmypid();
        }

        self::$c ??= \FFI::cdef('int getpid(void);');

        return self::$c->getpid();
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

        /** @var list<string> $gone DSNs of unreachable stores, so that each causes only one wait */
        $gone = [];

        foreach ($owners as $token => [$process, $session]) {
            if ($process === self::pid() && ($gone === [] || !\in_array($session->engine->dsn(), $gone, true))) {
                try {
                    $session->detach((string) $token);
                } catch (Failure $failure) {
                    // No caller is left to receive the error. The owner ends with its lease.
                    $kind = FailureKind::tryFrom($failure->getCode());

                    if ($kind === FailureKind::StoreUnavailable || $kind === FailureKind::OutcomeUnknown) {
                        $gone[] = $session->engine->dsn();
                    }
                }
            }
        }
    }
}
