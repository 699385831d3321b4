<?php

declare(strict_types=1);

namespace McpState\Tests\Sdk;

use McpState\Tests\Sdk\Support\SdkTestCase;
use McpState\Tests\Support\Child;

/**
 * Finds classes whose names differ between versions of the SDK, or that not all versions have, when they are needed.
 */
final class NamesTest extends SdkTestCase
{
    /** The library names no other class of the SDK. All versions have these, or one optional class needs them. */
    private const NAMED = [
        'Session.php' => ['Mcp\Server\Session\SessionInterface'],
        'SessionManager.php' => ['Mcp\Server\Session\SessionManagerInterface'],
        'Internal/Sdk.php' => ['Mcp\Server\Session\SessionManagerInterface'],
        'NotificationBus.php' => [
            'Mcp\Schema\JsonRpc\Notification',
            'Mcp\Server\Subscription\NotificationBusInterface',
        ],
        'StreamableHttpTransport.php' => ['Mcp\Server\Transport\StreamableHttpTransport'],
    ];

    public function testOnlyNamesThatAllVersionsShareAreWrittenDown(): void
    {
        $source = \dirname(__DIR__, 2) . '/src/Sdk/';
        $named = [];

        foreach (new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator($source)) as $file) {
            $path = \substr((string) $file, \strlen($source));

            if (\str_ends_with($path, '.php')) {
                \preg_match_all('/^use (Mcp\\\\[\w\\\\]+)/m', (string) \file_get_contents((string) $file), $matches);
                $named[$path] = $matches[1];
            }
        }

        self::assertEqualsCanonicalizing(self::NAMED, \array_filter($named));
    }

    /** @return iterable<string, array{string}> */
    public function storeExceptions(): iterable
    {
        yield '0.9' => ['Mcp\Exception'];
        yield '0.10' => ['Mcp\Server\Exception'];
    }

    /** @dataProvider storeExceptions */
    public function testAnUnreachableStoreIsToldToTheSdkInItsOwnTerms(string $namespace): void
    {
        self::assertSame("$namespace\SessionStoreException: no such device", $this->thrownByExists(
            "namespace $namespace; final class SessionStoreException extends \RuntimeException {}",
        ));
    }

    public function testWhereTheSdkHasNoTermForItTheFailureItselfIsThrown(): void
    {
        $other = 'namespace Mcp\Exception; final class SessionStoreException { public function __construct(array $how) {} }';
        self::assertSame('McpState\Exception\StoreUnavailable: no such device', $this->thrownByExists($other));
        self::assertSame('McpState\Exception\StoreUnavailable: no such device', $this->thrownByExists(''));
    }

    private function thrownByExists(string $code): string
    {
        $child = Child::start(
            'require $args[0]; eval($args[1]);
            $manager = new Sdk\SessionManager(fn () => throw new Exception\StoreUnavailable("no such device"));
            try {
                $manager->exists(\Symfony\Component\Uid\Uuid::v4());
            } catch (\Throwable $e) {
                say(get_class($e) . ": " . $e->getMessage());
            }',
            $this->dsn(),
            __DIR__ . '/autoload.php',
            $code,
        );

        return $child->hear();
    }
}
