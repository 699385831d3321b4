<?php

declare(strict_types=1);

namespace McpState\Tests\Library;

use McpState\Ffi;
use McpState\Native;
use McpState\Tests\Support\Directory;
use PHPUnit\Framework\TestCase;

/**
 * FFI in place of the extension: when the library chooses it, how the library reports obstacles, and that there is
 * never a second copy of the engine in a process. `MCP_STATE_BACKEND=ffi php/tests/run` runs the contract through FFI.
 */
final class FfiTest extends TestCase
{
    private string $directory;

    protected function setUp(): void
    {
        if (!\extension_loaded('ffi')) {
            self::markTestSkipped('this PHP has no FFI');
        }

        $this->directory = Directory::temporary();
    }

    protected function tearDown(): void
    {
        Directory::remove($this->directory);
    }

    /** @dataProvider backends */
    public function testTheMethodsAreTheExtensions(string $native, string $ffi): void
    {
        $signatures = static function (string $class): array {
            $signatures = [];

            foreach ((new \ReflectionClass($class))->getMethods(\ReflectionMethod::IS_PUBLIC) as $method) {
                if (!\str_starts_with($method->name, '__')) {
                    $returned = \str_replace(['self', 'McpState\Native', 'McpState\Ffi'], ['Engine', '', ''], (string) $method->getReturnType());
                    $parameters = \array_map(
                        static fn (\ReflectionParameter $p): array => [
                            $p->name,
                            \explode('|', \str_replace('string|int', 'int|string', (string) $p->getType())),
                            $p->isOptional() ? $p->getDefaultValue() : 'must be given',
                        ],
                        $method->getParameters(),
                    );
                    $signatures[$method->name] = [\ltrim($returned, '\\'), $parameters];
                }
            }

            \ksort($signatures);

            return $signatures;
        };

        self::assertSame($signatures($native), $signatures($ffi));
    }

    /** @return iterable<array{class-string, class-string}> */
    public static function backends(): iterable
    {
        yield [Native\Engine::class, Ffi\Engine::class];
        yield [Native\Session::class, Ffi\Session::class];
    }

    public function testFfiTakesTheExtensionsPlace(): void
    {
        $out = $this->php('opens(); echo McpState\Store::open("memory://?ttl_ms=321")->dsn();');

        self::assertSame('McpState\Ffi\Engine memory://?ttl_ms=321', $out);
    }

    public function testWhereTheExtensionIsLoadedFfiIsNeverUsed(): void
    {
        $out = $this->php('opens(); echo preg_match("/libmcp_state/", file_get_contents("/proc/self/maps"));', [], true);

        self::assertSame('McpState\Native\Engine 0', $out);
    }

    public function testWithoutADsnPhpIniNamesTheStore(): void
    {
        $code = 'echo McpState\Store::open()->dsn();';

        self::assertSame('memory://?ttl_ms=777', $this->php($code, ['mcp_state.dsn="memory://?ttl_ms=777"']));
    }

    public function testPhpIniNamesTheLibrary(): void
    {
        $library = \realpath((string) \getenv('MCP_STATE_LIBRARY') ?: \dirname(__DIR__, 3) . '/build/libmcp_state.so');
        $named = ['MCP_STATE_LIBRARY' => ''];

        self::assertSame('McpState\Ffi\Engine ', $this->php('opens();', ["mcp_state.library=$library"], false, $named));
        self::assertStringContainsString('/nowhere.so', $this->php('opens();', ['mcp_state.library=/nowhere.so'], false, $named));
    }

    /**
     * @dataProvider obstacles
     *
     * @param list<string>          $ini
     * @param array<string, string> $env
     */
    public function testWhatKeepsFfiFromBeingUsedIsSaid(array $ini, array $env, string ...$parts): void
    {
        $out = $this->php('opens();', $ini, false, $env);

        foreach (['BackendMissing', 'extension=mcp_state', ...$parts] as $part) {
            self::assertStringContainsString($part, $out);
        }
    }

    /** @return iterable<string, array{list<string>, array<string, string>, string}> */
    public static function obstacles(): iterable
    {
        yield 'not allowed' => [['ffi.enable=0'], [], 'ffi.enable=0', 'ffi-preload.php'];
        yield 'no library' => [[], ['MCP_STATE_LIBRARY' => '/nowhere.so'], '/nowhere.so', 'MCP_STATE_LIBRARY'];
        yield 'another library' => [[], ['MCP_STATE_LIBRARY' => 'libc.so.6'], 'libc.so.6', 'mcp_state_abi_version'];
    }

    public function testALibraryOfAnotherVersionIsRefused(): void
    {
        \file_put_contents("$this->directory/old.c", 'unsigned mcp_state_abi_version(void) { return 99; }');
        \exec('cc -shared -o ' . \escapeshellarg("$this->directory/old.so") . ' ' . \escapeshellarg("$this->directory/old.c"));
        $out = $this->php('opens();', [], false, ['MCP_STATE_LIBRARY' => "$this->directory/old.so"]);

        self::assertStringContainsString('BackendMissing', $out);
        self::assertStringContainsString('has ABI version 99, but this library needs 1', $out);
    }

    /** Closing a file in one copy would drop the locks of the other. */
    public function testASecondCopyInOneProcessRefusesToOpenAStore(): void
    {
        \copy(
            (string) \getenv('MCP_STATE_LIBRARY') ?: \dirname(__DIR__, 3) . '/build/libmcp_state.so',
            "$this->directory/libmcp_state.so",
        );
        $code = 'opens();' . <<<'PHP'
            $copy = FFI::cdef(file_get_contents(dirname($argv[1]) . '/mcp_state.ffi.h'), $argv[2]);
            $engine = $copy->new('mcp_state_engine *[1]');
            $error = $copy->new('mcp_state_error[1]');
            echo $copy->mcp_state_engine_open('memory://', 9, $engine, $error), ' ', FFI::string($error[0]->text);
            PHP;
        $beside = $this->php($code, [], false, [], "$this->directory/libmcp_state.so");
        $besideTheExtension = $this->php($code, [], true, [], "$this->directory/libmcp_state.so");
        \copy("$this->directory/libmcp_state.so", "$this->directory/engine84.so");
        $renamed = $this->php($code, [], false, ['MCP_STATE_LIBRARY' => "$this->directory/engine84.so"], "$this->directory/libmcp_state.so");
        \copy(\getenv('MCP_STATE_EXTENSION') ?: \dirname(__DIR__, 3) . '/build/mcp_state.so', "$this->directory/php84nts.so");
        $ini = ["extension=$this->directory/php84nts.so"];
        $besideARenamedExtension = $this->php($code, $ini, false, [], "$this->directory/engine84.so");

        self::assertMatchesRegularExpression('~^McpState.Ffi.Engine 6 .*/libmcp_state.so loaded already~', $beside);
        self::assertMatchesRegularExpression('~^McpState.Native.Engine 6 .*/mcp_state.so loaded already~', $besideTheExtension);
        self::assertMatchesRegularExpression('~^McpState.Ffi.Engine 6 .*/engine84.so loaded already~', $renamed);
        self::assertMatchesRegularExpression('~^McpState.Native.Engine 6 .*/php84nts.so loaded already~', $besideARenamedExtension);
    }

    public function testNoStoreIsOpenedDuringPreload(): void
    {
        \file_put_contents("$this->directory/preload.php", '<?php require $_SERVER["AUTOLOAD"] ?? getenv("AUTOLOAD");
            try {
                McpState\Store::open("memory://");
            } catch (McpState\Exception\StoreUnavailable $e) {
                file_put_contents(__DIR__ . "/said", $e->getMessage());
            }');
        $user = \posix_getpwuid(\posix_geteuid())['name'];
        $ini = ['opcache.enable_cli=1', "opcache.preload=$this->directory/preload.php", "opcache.preload_user=$user"];
        $out = $this->php('opens();', $ini, false, ['AUTOLOAD' => \dirname(__DIR__, 2) . '/autoload.php']);

        self::assertStringContainsString('preload', (string) @\file_get_contents("$this->directory/said"), $out);
        self::assertSame('McpState\Ffi\Engine ', $out);
    }

    public function testShutdownFunctionsStillHaveTheirOwner(): void
    {
        $code = <<<'PHP'
            register_shutdown_function(function () { global $owner; echo $owner->enqueueOutgoing('1'); });
            $owner = McpState\Store::open('memory://')->createSession()->attach();
            register_shutdown_function(function () { global $owner; echo $owner->enqueueOutgoing('2'); });
            no_such_function();
            PHP;

        self::assertSame('12', $this->php($code, ['display_errors=0', 'log_errors=0']));
    }

    public function testAnExitInAShutdownFunctionEndsTheOwnersToo(): void
    {
        $store = "file://$this->directory/store?durability=none";
        $code = '$s = McpState\Store::open($argv[2])->createSession("s"); $s->attach()->registerPending(1);'
            . 'register_shutdown_function(function () { exit; });';
        self::assertSame('', $this->php($code, [], false, [], $store));
        $code = 'echo count(McpState\Store::open($argv[2])->openSession("s")->allPending());';

        self::assertSame('0', $this->php($code, [], false, [], $store));
    }

    /** PHP calls destructors in the order of creation, so that of the session runs first. */
    public function testADestructorAtTheEndStillHasItsSession(): void
    {
        $code = <<<'PHP'
            final class Late
            {
                public static ?self $late = null;
                public ?McpState\Session $session = null;

                public function __destruct()
                {
                    echo $this->session->touch() ? 'there' : 'gone';
                }
            }
            $session = McpState\Store::open('memory://')->createSession();
            Late::$late = new Late();
            Late::$late->session = $session;
            PHP;

        self::assertSame('there', $this->php($code));
    }

    public function testWhatTheLibraryGivesAwayIsFreed(): void
    {
        $code = <<<'PHP'
            $rss = fn (): int => (int) preg_replace('/.*VmRSS:\s*(\d+).*/s', '$1', file_get_contents('/proc/self/status'));
            $store = McpState\Store::open('memory://');
            $id = $store->createSession()->id;
            $big = str_repeat('x', 100_000);
            for ($i = 0; $i < 1500; ++$i) {
                if ($i === 500) {
                    $before = $rss();
                }
                $session = $store->openSession($id);
                $session->set('big', $big);
                $session->get('big');
                $owner = $session->attach();
                $owner->enqueueOutgoing("\"$big\"");
                $owner->takeOutgoing();
                $owner->detach();
            }
            echo $rss() - $before < 50_000 ? 'steady' : $rss() - $before;
            PHP;

        self::assertSame('steady', $this->php($code));
    }

    /**
     * Runs $code in another PHP, with or without the extension, and returns its output. The code can use `$argv[2]`,
     * and `opens()`, which opens a store and prints the class of its engine.
     *
     * @param list<string>          $ini
     * @param array<string, string> $env
     */
    private function php(
        string $code,
        array $ini = [],
        bool $extension = false,
        array $env = [],
        string $argument = '',
    ): string {
        \file_put_contents("$this->directory/code.php", '<?php require $argv[1];
            function opens(): void {
                $store = McpState\Store::open("memory://");
                echo get_debug_type((fn () => $this->driver)->call($store)), " ";
            }
            try {
                ' . $code . '
            } catch (McpState\Exception\ExceptionInterface $e) {
                echo $e::class, ": ", $e->getMessage();
            }');
        $env += ['MCP_STATE_LIBRARY' => (string) \getenv('MCP_STATE_LIBRARY')] + \getenv();

        if (!$extension) {
            unset($env['PHP_INI_SCAN_DIR']);
        }

        $command = [\PHP_BINARY, '-d', 'ffi.enable=1'];

        foreach ($ini as $setting) {
            \array_push($command, '-d', $setting);
        }

        $command = [...$command, "$this->directory/code.php", \dirname(__DIR__, 2) . '/autoload.php', $argument];
        $process = \proc_open($command, [1 => ['pipe', 'w'], 2 => \STDERR], $pipes, null, $env);
        self::assertNotFalse($process);
        $out = (string) \stream_get_contents($pipes[1]);
        \proc_close($process);

        return $out;
    }
}
