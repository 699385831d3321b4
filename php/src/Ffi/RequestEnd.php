<?php

declare(strict_types=1);

namespace McpState\Ffi;

use McpState\Internal\FailureKind;

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

    /** The C library, for `getpid`. */
    private static ?\FFI $c = null;

    private bool $hasBegun = false;

    /** @var array<string, array{int, Session}> process and session by token */
    private array $owners = [];

    /** How many owners there are when it is looked for those that have ended: a worker's request has no end. */
    private int $lookAt = 64;

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
        $request = self::$request;

        if (\count($request->owners) >= $request->lookAt) {
            $isLeft = static fn (array $owner, string|int $token): bool =>
                $owner[0] === self::pid() && !self::hasEnded($owner[1], (string) $token);
            $request->owners = \array_filter($request->owners, $isLeft, \ARRAY_FILTER_USE_BOTH);
            $request->lookAt = \max(64, 2 * \count($request->owners));
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

    /** The number of this process, by the C library where the host disables `getmypid`. */
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

        /** @var list<string> $gone a store that is not there is waited for once, not for each owner or engine */
        $gone = [];

        foreach ($owners as $token => [$process, $session]) {
            if ($process === self::pid() && ($gone === [] || !\in_array($session->engine->dsn(), $gone, true))) {
                try {
                    $session->detach((string) $token);
                } catch (Failure $failure) {
                    // Nobody is left to be told; the lease ends it.
                    $kind = FailureKind::tryFrom($failure->getCode());

                    if ($kind === FailureKind::StoreUnavailable || $kind === FailureKind::OutcomeUnknown) {
                        $gone[] = $session->engine->dsn();
                    }
                }
            }
        }
    }
}
