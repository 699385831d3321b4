<?php

declare(strict_types=1);

namespace McpState\Tests\Support;

use McpState\Exception\LimitExceeded;
use McpState\Exception\StoreFull;
use McpState\OwnerKind;
use McpState\Session;
use McpState\Store;

/**
 * The effect of each setting: a value, and a behaviour that a store with this value shows and a store with the default
 * does not. The table covers docs/settings.md. It uses no class of PHPUnit, because processes with special ini settings
 * run it too.
 */
final class Settings
{
    private const REQUEST = '{"jsonrpc":"2.0","method":"elicitation/create"}';

    /**
     * Returns the settings that are options of every kind of store or of stores in files.
     *
     * @return array<string, array{string, \Closure(Store, string): void}> by name
     */
    public static function table(): array
    {
        return [
            'ttl_ms' => ['20', static function (Store $store): void {
                $id = $store->createSession()->id;
                self::until(static fn (): bool => $store->openSession($id) === null);
            }],
            'lease_ms' => ['20', static function (Store $store): void {
                $session = $store->createSession();
                $child = \pcntl_fork();

                if ($child === 0) {
                    $session->attach();
                    \posix_kill((int) \getmypid(), \SIGKILL);
                }

                \pcntl_waitpid($child, $status);
                self::until(static function () use ($session): bool {
                    $session->attach(OwnerKind::Reply)->detach(); // Attaching releases dead owners.

                    return $session->stats()['owners'] === 0;
                });
            }],
            'request_timeout_ms' => ['1000', static function (Store $store): void {
                $owner = $store->createSession()->attach();
                $owner->sendRequest(self::REQUEST);
                $owner->registerPending(7);

                foreach ($owner->pending() as $pending) {
                    self::expect($pending->remainingMs > 0 && $pending->remainingMs <= 1000, "$pending->remainingMs ms");
                }

                $owner->registerPending(8, 60_000);
                self::expect($owner->pending()[2]->remainingMs > 1000, 'a given timeout is kept');
            }],
            'durability' => ['none', static function (Store $store): void {
                $stamp = (string) \file_get_contents($store->stats()['place']['place'] . '/stamp');
                self::expect(\preg_match('/"?durable"?\s*[:=]\s*false/', $stamp) === 1, $stamp);
            }],
            'write_map' => ['1', static function (Store $store): void {
                self::expect($store->stats()['place']['writes'] === 'through the map', 'pages are written through the map');
            }],
            'group' => [(string) \posix_getegid(), static function (Store $store): void {
                $mode = (int) \fileperms($store->stats()['place']['place']) & 0070;
                self::expect($mode === 0070, 'the group shares the directory');
            }],
            'max_message_bytes' => ['10', self::limit(
                static fn (Session $session) => $session->attach()->enqueueOutgoing('"123456789"'),
            )],
            'max_owner_messages' => ['1', self::limit(static function (Session $session): void {
                $owner = $session->attach();
                $owner->enqueueOutgoing('{}');
                $owner->enqueueOutgoing('{}');
            })],
            'max_owner_bytes' => ['10', self::limit(static fn (Session $session) => $session->attach()->enqueueOutgoing('"123456789"'))],
            'max_owners' => ['1', self::limit(static fn (Session $session) => [$session->attach(), $session->attach()])],
            'max_pending' => ['1', self::limit(static function (Session $session): void {
                $owner = $session->attach();
                $owner->registerPending(1);
                $owner->registerPending(2);
            })],
            'max_in_flight' => ['1', self::limit(static function (Session $session): void {
                $owner = $session->attach();
                $owner->beginRequest(1);
                $owner->beginRequest(2);
            })],
            'max_broadcasts' => ['1', self::limit(static function (Session $session): void {
                $session->enqueueBroadcast('{}');
                $session->enqueueBroadcast('{}');
            })],
            'max_attribute_bytes' => ['10', self::limit(static fn (Session $session) => $session->set('k', '1234567890'))],
            'max_attributes' => ['1', self::limit(static fn (Session $session) => $session->patch(['a' => 1, 'b' => 2]))],
            'max_patch_changes' => ['1', self::limit(static fn (Session $session) => $session->patch(['a' => 1, 'b' => 2]))],
            'max_session_bytes' => ['10', self::limit(static fn (Session $session) => $session->set('k', '1234567890'))],
            'max_sessions' => ['1', self::limit(static fn (Session $_, Store $store) => $store->createSession())],
            'max_sessions_per_principal' => ['1', self::limit(static function (Session $_, Store $store): void {
                $store->createSession(principal: 'ann');
                $store->createSession(principal: 'ann');
            })],
            'max_store_bytes' => ['1M', static function (Store $store): void {
                self::expect($store->stats()['limit_bytes'] === 1 << 20, 'the limit is shown');
                $full = static function () use ($store): void {
                    for ($i = 0; $i < 64; ++$i) {
                        $store->createSession()->set('k', \str_repeat('x', 32_000));
                    }
                };
                self::expect(self::thrown(StoreFull::class, $full) !== null, 'it is full');
            }],
            'max_waiting' => ['1', self::limit(static function (Session $_, Store $store): void {
                $store->waitingRoom()?->attach(OwnerKind::Reply);
                $store->waitingRoom()?->attach(OwnerKind::Reply);
            })],
            'max_topic_messages' => ['1', static function (Store $store): void {
                $store->publish('t', 'a');
                $store->publish('t', 'b');
                self::expect($store->since('t', 0)->missed === 1, 'the oldest gave way');
            }],
            'max_topic_bytes' => ['3', static function (Store $store): void {
                $store->publish('t', 'aa');
                $store->publish('t', 'bb');
                self::expect($store->since('t', 0)->missed === 1, 'the oldest gave way');
            }],
            'max_topics' => ['1', self::limit(static function (Session $_, Store $store): void {
                $store->publish('t', 'a');
                $store->publish('u', 'a');
            })],
            'max_once_keys' => ['1', self::limit(static function (Session $_, Store $store): void {
                $store->consumeOnce('a', 60_000);
                $store->consumeOnce('b', 60_000);
            })],
        ];
    }

    /** Tells whether a setting is only an option of the DSN. */
    public static function isOnlyAnOption(string $name): bool
    {
        return \in_array($name, ['durability', 'write_map', 'group'], true);
    }

    /** @return \Closure(Store): void expects that $do exceeds a limit on a session, and that the error names the limit */
    private static function limit(\Closure $do): \Closure
    {
        return static function (Store $store, string $name) use ($do): void {
            $error = self::thrown(LimitExceeded::class, static function () use ($do, $store): void {
                $do($store->createSession(), $store);
            });
            self::expect(\str_contains((string) $error?->getMessage(), $name), "$name is what limits: {$error?->getMessage()}");
        };
    }

    /** @param class-string<\Throwable> $class */
    private static function thrown(string $class, \Closure $do): ?\Throwable
    {
        try {
            $do();
        } catch (\Throwable $e) {
            return $e instanceof $class ? $e : throw $e;
        }

        return null;
    }

    private static function until(\Closure $is): void
    {
        for ($end = \hrtime(true) + 10_000_000_000; !$is(); \usleep(1000)) {
            self::expect(\hrtime(true) < $end, 'the condition holds within ten seconds');
        }
    }

    private static function expect(bool $holds, string $what): void
    {
        $holds || throw new \LogicException("Not so: $what");
    }
}
