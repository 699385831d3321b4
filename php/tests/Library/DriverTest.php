<?php

declare(strict_types=1);

namespace McpState\Tests\Library;

use McpState\Store;
use McpState\Tests\Support\Directory;
use PHPUnit\Framework\TestCase;

/** The library runs on an extension of the right version, or throws a clear exception. */
final class DriverTest extends TestCase
{
    public function testWithoutTheExtensionTheExceptionSaysWhatToInstall(): void
    {
        $message = $this->openWithoutExtension('');

        self::assertStringContainsString('McpState\Exception\BackendMissing', $message);
        self::assertStringContainsString('extension=mcp_state', $message);
    }

    /** @dataProvider versions */
    public function testAnExtensionThatDoesNotFitSaysWhichSideToUpgrade(int $version, string $mend): void
    {
        $message = $this->openWithoutExtension(
            "namespace McpState\\Native { const API_VERSION = $version; const VERSION = '9.8.7'; }"
        );

        self::assertStringContainsString('McpState\Exception\BackendMissing', $message);
        self::assertStringContainsString('9.8.7', $message);
        self::assertStringContainsString("API version $version", $message);
        self::assertStringContainsString($mend, $message);
    }

    /** @return iterable<array{int, string}> */
    public static function versions(): iterable
    {
        yield 'too old' => [0, 'upgrade the extension'];
        yield 'too new' => [1000, 'upgrade the Composer package'];
    }

    /** Runs $prelude and opens a store in a PHP without the extension, and returns the outcome. */
    private function openWithoutExtension(string $prelude): string
    {
        $directory = Directory::temporary();
        \file_put_contents("$directory/open.php", "<?php $prelude namespace {" . <<<'PHP'
                require $argv[1];
                try {
                    McpState\Store::open('memory://');
                    echo 'opened';
                } catch (Throwable $e) {
                    echo $e::class, ': ', $e->getMessage();
                }
            }
            PHP);

        try {
            return (string) \shell_exec(\implode(' ', \array_map('escapeshellarg', [
                \PHP_BINARY,
                '-n',
                "$directory/open.php",
                \dirname(__DIR__, 2) . '/autoload.php',
            ])));
        } finally {
            Directory::remove($directory);
        }
    }

    public function testWithoutADsnTheEnvironmentNamesTheStoreBeforeTheIniSetting(): void
    {
        \putenv('MCP_STATE_DSN=memory://?ttl_ms=12345');

        try {
            self::assertSame(Store::open('memory://?ttl_ms=12345')->dsn(), Store::open()->dsn());
        } finally {
            \putenv('MCP_STATE_DSN');
        }
    }

    public function testWithoutADsnAndAnEnvironmentTheIniSettingNamesTheStore(): void
    {
        $code = 'require $argv[1]; echo McpState\Store::open()->dsn();';
        $command = [\PHP_BINARY, '-d', 'mcp_state.dsn="memory://?ttl_ms=777"', '-r', $code, '--'];
        $command[] = \dirname(__DIR__, 2) . '/autoload.php';
        $dsn = (string) \shell_exec(\implode(' ', \array_map('escapeshellarg', $command)));

        self::assertSame('memory://?ttl_ms=777', $dsn);
    }
}
