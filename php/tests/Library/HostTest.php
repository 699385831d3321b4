<?php

declare(strict_types=1);

namespace McpState\Tests\Library;

use McpState\Internal\Host;
use PHPUnit\Framework\TestCase;

/**
 * A host may disable any function with `disable_functions`. The library works without it, or names it in a typed error.
 */
final class HostTest extends TestCase
{
    /** Functions that the library calls only if they exist. */
    private const OPTIONAL = ['error_log', 'getmypid', 'php_ini_loaded_file'];

    private const ROUND = <<<'PHP'
        try {
            require $argv[1];
            $store = McpState\Store::open('memory://');
            $session = $store->createSession();
            $owner = $session->attach();
            $session->set('a.b', [1, 'x' => null]);
            $session->update('n', fn ($n) => $n + 1);
            $pending = $owner->sendRequest(['jsonrpc' => '2.0', 'method' => 'ping'], timeoutMs: 60_000);
            $owner->beginRequest(1);
            $taken = count([...$owner->takeOutgoing()]);
            $session->deliverResponse($pending->id, '{}');
            $pending->await(onSlice: fn () => null);
            $session->attach();
            $store->publish('t', '1');
            $store->since('t', 0);
            $store->stats();
            $store->collect();
            fwrite(STDOUT, "works");
        } catch (Throwable $e) {
            fwrite(STDOUT, get_class($e) . ': ' . $e->getMessage());
        }
        PHP;

    public function testTheListsNameEveryFunctionThatTheLibraryCalls(): void
    {
        [$everywhere, $byFfi] = [self::called('~^(?!Ffi/)~'), self::called('~^Ffi/~')];

        self::assertGreaterThan(20, \count($everywhere));
        self::assertSame([], \array_diff($everywhere, Host::NEEDED, self::OPTIONAL), 'add to Host::NEEDED');
        self::assertSame([], \array_diff($byFfi, Host::NEEDED, Host::NEEDED_BY_FFI, self::OPTIONAL), 'add to Host::NEEDED_BY_FFI');
    }

    /** @dataProvider backends */
    public function testWithoutAnyOneFunctionItWorksOrSaysWhichIsMissing(bool $ffi): void
    {
        self::assertSame('works', $this->round('', $ffi));

        $functions = [...Host::NEEDED, ...Host::NEEDED_BY_FFI, ...self::OPTIONAL];
        // The list is the same for both backends, so one of them suffices for functions that only compute.
        $taken = $ffi ? $functions : \preg_grep('/^(array|is|str)_?/', $functions, \PREG_GREP_INVERT);

        foreach ($taken as $function) {
            $came = $this->round($function, $ffi);

            if ($came !== 'works') {
                self::assertStringStartsWith('McpState\Exception\BackendMissing: ', $came, "without $function");
                self::assertStringContainsString($function, $came);
            }

            if (\in_array($function, self::OPTIONAL, true)) {
                self::assertSame('works', $came, "without $function");
            }
        }
    }

    /** @return iterable<string, array{bool}> */
    public static function backends(): iterable
    {
        yield 'extension' => [false];
        yield 'FFI' => [true];
    }

    /** A forked child ends no owner of its parent, even if only the C library can tell the process id. */
    public function testAChildEndsNoOwnerOfItsParentWithoutGetmypid(): void
    {
        if (!\extension_loaded('pcntl')) {
            self::markTestSkipped('PHP has no pcntl');
        }

        $code = <<<'PHP'
            require $argv[1];
            $owner = McpState\Store::open('memory://')->createSession()->attach();
            if (pcntl_fork() === 0) {
                exit;
            }
            pcntl_wait($status);
            $owner->enqueueOutgoing('1');
            fwrite(STDOUT, "works");
            PHP;

        self::assertSame('works', $this->round('getmypid', true, $code));
    }

    private function round(string $disabled, bool $ffi, string $code = self::ROUND): string
    {
        $php = \dirname(__DIR__, 2);
        $backend = $ffi
            ? ['-d', 'ffi.enable=1']
            : ['-d', 'extension=' . (\getenv('MCP_STATE_EXTENSION') ?: \dirname($php) . '/build/mcp_state.so')];
        // FFI may be a module that only php.ini loads.
        $modules = $ffi && !\in_array('FFI', \get_loaded_extensions(), true) ? ['-d', 'extension=ffi'] : [];
        $command = [\PHP_BINARY, ...$modules, ...$backend, '-d', "disable_functions=$disabled", '-r', $code, '--', "$php/autoload.php"];
        $env = ['MCP_STATE_LIBRARY' => \getenv('MCP_STATE_LIBRARY') ?: \dirname($php) . '/build/libmcp_state.so'] + \getenv();
        unset($env['PHP_INI_SCAN_DIR']); // This directory would load the extension.
        $process = \proc_open($command, [1 => ['pipe', 'w'], 2 => ['pipe', 'w']], $pipes, null, $env);
        self::assertNotFalse($process);
        $out = (string) \stream_get_contents($pipes[1]);
        $errors = (string) \stream_get_contents($pipes[2]);
        \proc_close($process);

        return $out === '' ? $errors : $out;
    }

    /**
     * Returns the functions that files of the library call with a leading backslash.
     *
     * @return list<string>
     */
    private static function called(string $files): array
    {
        $place = \dirname(__DIR__, 2) . '/src';
        $called = [];

        foreach (new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator($place, \FilesystemIterator::SKIP_DOTS)) as $file) {
            if (\preg_match($files, \substr((string) $file, \strlen($place) + 1)) !== 1) {
                continue;
            }

            $tokens = \array_values(\array_filter(
                \PhpToken::tokenize((string) \file_get_contents((string) $file)),
                static fn (\PhpToken $token): bool => !$token->isIgnorable(),
            ));

            foreach ($tokens as $at => $token) {
                $isNew = $at > 0 && $tokens[$at - 1]->is(\T_NEW);

                if ($token->is(\T_NAME_FULLY_QUALIFIED) && !$isNew && ($tokens[$at + 1] ?? null)?->text === '(') {
                    $called[] = \substr($token->text, 1);
                }
            }
        }

        return \array_values(\array_unique($called));
    }
}
