<?php

declare(strict_types=1);

namespace McpState\Tests\Stores;

use McpState\Exception\ExceptionInterface;
use McpState\Store;
use McpState\Tests\Support\Directory;
use McpState\Tests\Support\RedisServer;
use McpState\Tests\Support\Settings;
use PHPUnit\Framework\TestCase;

/**
 * The library follows every setting of docs/settings.md, as an option of the DSN and, if there is one, as an ini
 * setting.
 */
final class SettingsTest extends TestCase
{
    /** Options whose behaviour needs special servers, clocks or machines, and the tests that cover them. */
    private const SHOWN_ELSEWHERE = [
        'on_full' => ['tests/contract/limits.rs', 'g10_with_on_full_reject_a_new_session_is_refused'],
        'prefix' => ['php/tests/Stores/SettingsTest.php', 'testAPrefixADatabaseAndAPasswordAreFollowed'],
        'db' => ['php/tests/Stores/SettingsTest.php', 'testAPrefixADatabaseAndAPasswordAreFollowed'],
        'user' => ['php/tests/Stores/SettingsTest.php', 'testAPrefixADatabaseAndAPasswordAreFollowed'],
        'password' => ['php/tests/Stores/SettingsTest.php', 'testAPrefixADatabaseAndAPasswordAreFollowed'],
        'connect_timeout_ms' => ['php/tests/Stores/SettingsTest.php', 'testTimesOfAServerThatDoesNotAnswerAreFollowed'],
        'timeout_ms' => ['php/tests/Stores/SettingsTest.php', 'testTimesOfAServerThatDoesNotAnswerAreFollowed'],
        'retry_ms' => ['php/tests/Stores/SettingsTest.php', 'testTimesOfAServerThatDoesNotAnswerAreFollowed'],
        'cluster' => ['tests/redis/topologies.rs', 'fn cluster()'],
        'sentinel' => ['tests/redis/topologies.rs', 'fn sentinels()'],
        'sentinel_user' => ['tests/redis/topologies.rs', 'fn sentinel_login()'],
        'sentinel_password' => ['tests/redis/topologies.rs', 'fn sentinel_login()'],
        'tls_ca' => ['tests/redis/tls.rs', 'fn with_tls()'],
        'tls_certificate' => ['tests/redis/tls.rs', 'fn client_certificates()'],
        'tls_key' => ['tests/redis/tls.rs', 'fn client_certificates()'],
        'mcp_state.dsn' => ['tests/system/test_ini_settings.py', 'mcp_state.dsn'],
    ];

    private string $directory;

    protected function setUp(): void
    {
        $this->directory = Directory::temporary();
    }

    protected function tearDown(): void
    {
        Directory::remove($this->directory);
    }

    /** @return iterable<string, array{string}> */
    public static function options(): iterable
    {
        foreach (Settings::table() as $name => $_) {
            yield $name => [$name];
        }
    }

    /** @return iterable<string, array{string}> */
    public static function iniSettings(): iterable
    {
        foreach (Settings::table() as $name => $_) {
            if (!Settings::isOnlyAnOption($name)) {
                yield $name => [$name];
            }
        }
    }

    /** @dataProvider options */
    public function testTheOptionIsFollowed(string $name): void
    {
        [$value, $behaviour] = Settings::table()[$name];
        $behaviour(Store::open($this->dsn($name === 'durability' ? "?$name=$value" : "?durability=none&$name=$value")), $name);
        $this->addToAssertionCount(1); // An unmet expectation throws.
    }

    /** @dataProvider iniSettings */
    public function testTheIniSettingIsFollowed(string $name): void
    {
        if (!\extension_loaded('mcp_state')) {
            self::markTestSkipped('FFI has no ini settings but mcp_state.dsn and mcp_state.library.');
        }

        [$value] = Settings::table()[$name];
        $code = 'foreach (["autoload.php", "tests/Support/Settings.php"] as $file) { require $argv[3] . "/$file"; }'
            . ' [, $behaviour] = McpState\Tests\Support\Settings::table()[$argv[1]];'
            . ' $behaviour(McpState\Store::open($argv[2]), $argv[1]); echo "followed";';
        $command = [\PHP_BINARY, '-d', "mcp_state.$name=$value", '-r', $code, '--', $name, $this->dsn('?durability=none'), \dirname(__DIR__, 2)];
        $process = \proc_open($command, [['pipe', 'r'], ['pipe', 'w'], \STDERR], $pipes);
        self::assertNotFalse($process);
        self::assertStringEndsWith('followed', (string) \stream_get_contents($pipes[1]));
    }

    public function testTheTableHasEveryDocumentedSetting(): void
    {
        $root = \dirname(__DIR__, 3);
        $page = (string) \file_get_contents("$root/docs/settings.md");
        $documented = [];

        foreach (\preg_split('/^## /m', $page) ?: [] as $section) {
            if (\preg_match('/\A(Options|Limits|Ini)/', $section) === 1) {
                \preg_match_all('/^\| (`[^|]*`(?:, `[^|]*`)*)/m', $section, $rows);
                \preg_match_all('/`(?:mcp_state\.)?([a-z_]+)`/', \implode(' ', $rows[1]), $names);
                $documented = [...$documented, ...$names[1]];
            }
        }

        $known = [...\array_keys(Settings::table()), ...\array_keys(self::SHOWN_ELSEWHERE)];
        $known = \array_map(static fn (string $name): string => \str_replace('mcp_state.', '', $name), $known);
        self::assertSame([], \array_values(\array_diff(\array_unique($documented), $known)), 'documented without a test');
        self::assertSame([], \array_values(\array_diff($known, $documented)), 'tested and not documented');

        foreach (self::SHOWN_ELSEWHERE as $name => [$file, $test]) {
            self::assertStringContainsString($test, (string) \file_get_contents("$root/$file"), $name);
        }
    }

    public function testAPrefixADatabaseAndAPasswordAreFollowed(): void
    {
        $socket = RedisServer::sharedSocket();
        $prefix = 'p' . \bin2hex(\random_bytes(6)) . ':';
        $user = 'u' . \bin2hex(\random_bytes(6));
        RedisServer::ask("ACL SETUSER $user on >secret ~$prefix* &$prefix* +@all");
        Store::open("redis+unix://$socket?prefix=$prefix&db=3&user=$user&password=secret")->createSession();
        $connection = \stream_socket_client("unix://$socket");
        self::assertNotFalse($connection);
        $keys = static function (int $database) use ($connection, $prefix): string {
            \fwrite($connection, "SELECT $database\r\nEVAL \"return #redis.call('keys', ARGV[1])\" 0 $prefix*\r\n");
            \fgets($connection);

            return \trim((string) \fgets($connection));
        };
        self::assertSame(':0', $keys(0));
        self::assertNotSame(':0', $keys(3));
        self::assertThrows(static fn () => Store::open("redis+unix://$socket?prefix=$prefix&user=$user&password=no")->createSession());
        self::assertThrows(static fn () => Store::open("redis+unix://$socket?prefix=other:&user=$user&password=secret")->createSession());
    }

    public function testTimesOfAServerThatDoesNotAnswerAreFollowed(): void
    {
        $silent = \stream_socket_server('tcp://127.0.0.1:0');
        self::assertNotFalse($silent);
        $silentPlace = 'redis://' . \stream_socket_get_name($silent, false);
        $gone = \stream_socket_server('tcp://127.0.0.1:0');
        self::assertNotFalse($gone);
        $gonePlace = 'redis://' . \stream_socket_get_name($gone, false);
        \fclose($gone);
        $paused = 'redis+unix://' . RedisServer::sharedSocket();

        $places = [
            'connect_timeout_ms' => "$silentPlace?timeout_ms=50&retry_ms=1",
            'retry_ms' => "$gonePlace?connect_timeout_ms=50&timeout_ms=50",
            'timeout_ms' => "$paused?connect_timeout_ms=1000&retry_ms=1&prefix=t" . \bin2hex(\random_bytes(6)),
        ];

        foreach ($places as $name => $place) {
            $took = static function (int $value) use ($name, $place): float {
                $store = Store::open("$place&$name=$value");

                if ($name === 'timeout_ms') {
                    $store->consumeOnce('a', 1000);
                    RedisServer::ask('CLIENT PAUSE 5000 ALL');
                }

                $start = \hrtime(true);
                self::assertThrows(static fn () => $store->consumeOnce('b', 1000));
                $ms = (\hrtime(true) - $start) / 1_000_000;

                if ($name === 'timeout_ms') {
                    RedisServer::ask('CLIENT UNPAUSE');
                }

                return $ms;
            };
            // Pauses between tries are random; a setting that is not followed makes no difference at all.
            [$short, $long] = [$took(50), $took(1500)];
            self::assertGreaterThan(2 * $short, $long, $name);
        }
    }

    private static function assertThrows(\Closure $do): void
    {
        try {
            $do();
        } catch (ExceptionInterface) {
            return;
        }

        self::fail('Nothing was thrown.');
    }

    private function dsn(string $options): string
    {
        return "file://$this->directory/store$options";
    }
}
