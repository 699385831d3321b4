"""No output has the password of a DSN: no message, no dump of an object, no report, in whatever language and however the DSN
is written.

A table: DSNs, right and wrong, against everything that may say something about them.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import test_c_abi
from lib.servers import EXTENSION, ROOT, program
from test_cli import build as command_line

SECRET = "s3cr3t"
# Nobody listens there.
AWAY = "127.0.0.1:1"
UNDERSTOOD = (
    f"redis://ann:{SECRET}@{AWAY}?retry_ms=1",
    f"redis://:{SECRET}@{AWAY}/2?retry_ms=1",
    f"redis://{SECRET}@{AWAY}?retry_ms=1",
    f"redis://ann%3A{SECRET}@{AWAY}?retry_ms=1",
    f"redis://{AWAY}?retry_ms=1&user=ann&password={SECRET}",
    f"redis://{AWAY}?retry_ms=1&sentinel=main&sentinel_user=ann&sentinel_password={SECRET}",
    f"redis://ann:{SECRET}@{AWAY}?retry_ms=1&cluster=1",
    f"redis+unix://ann:{SECRET}@/nowhere/redis.sock?retry_ms=1",
)
NOT_UNDERSTOOD = (
    f"redis://127.0.0.1 password={SECRET}",
    f"redis://127.0.0.1;password={SECRET}",
    f"redis://127.0.0.1/0 password={SECRET}",
    f"redis://user:{SECRET}",
    f"redis://user:{SECRET}@",
    f"u:{SECRET}@redis://h",
    f"u:{SECRET}@h",
    f"redis://h?pasword={SECRET}",
    f"redis://h?db=1 password={SECRET}",
    f"redis://h?sentinel_password={SECRET}",
    f"redis://h?password=%ff{SECRET}",
    f"redis+unix:///run/redis.sock password={SECRET}",
)

# Every class of ours that has to do with a store, opened lazily or not, dumped in every way PHP knows; and what is thrown.
PHP_DUMPS = r"""
[, $root, $dsn] = $argv;
require "$root/php/autoload.php";
require "$root/php/tests/Integration/autoload.php";

use McpState\Logiscape\SessionStore;
use McpState\Sdk\Middleware\SingleUseRequestState;
use McpState\Sdk\NotificationBus;
use McpState\Sdk\SessionManager;
use McpState\Store;

$factory = new class implements Psr\Http\Message\ResponseFactoryInterface, Psr\Http\Message\StreamFactoryInterface {
    public function createResponse(int $code = 200, string $reasonPhrase = ''): Psr\Http\Message\ResponseInterface
    {
        throw new LogicException();
    }

    public function createStream(string $content = ''): Psr\Http\Message\StreamInterface
    {
        throw new LogicException();
    }

    public function createStreamFromFile(string $filename, string $mode = 'r'): Psr\Http\Message\StreamInterface
    {
        throw new LogicException();
    }

    public function createStreamFromResource($resource): Psr\Http\Message\StreamInterface
    {
        throw new LogicException();
    }
};
$open = static fn () => Store::open($dsn);
$objects = [
    'manager' => SessionManager::open($dsn, maxWaiting: 2),
    'manager of a closure' => new SessionManager($open),
    'bus' => NotificationBus::open($dsn),
    'bus of a closure' => new NotificationBus($open),
    'request states' => new SingleUseRequestState($open, 1000, null, $factory, $factory),
    'logiscape' => SessionStore::open($dsn),
    'logiscape of a closure' => new SessionStore($open),
];
$drupal = new Drupal\mcp_state\ModuleSettings(new Drupal\Core\Site\Settings(['mcp_state' => ['dsn' => $dsn]]), 'sites/x');
var_dump($drupal, (array) $drupal);
print_r($drupal);
var_export($drupal);
$tries = [
    'store' => static fn () => Store::open($dsn)->stats(),
    'session' => static fn () => Store::open($dsn)->createSession(),
    'wait' => static fn () => Store::open($dsn)->waitSince('t', 0, 1),
    'manager' => static fn () => $objects['manager']->create(),
    'bus' => static fn () => $objects['bus']->cursor(),
    'logiscape' => static fn () => $objects['logiscape']->load('x'),
];

foreach ($tries as $name => $try) {
    try {
        $try();
        echo "\n$name: nothing is thrown\n";
    } catch (Throwable $e) {
        // The whole chain, with the arguments of all frames but this script's own, which are the DSN as the script has it.
        for ($thrown = $e; $thrown !== null; $thrown = $thrown->getPrevious()) {
            $own = static fn (array $frame): bool => ($frame['file'] ?? '') !== __FILE__
                || PHP_VERSION_ID >= 80200 || !in_array($frame['function'], ['open'], true);
            echo "\n", get_class($thrown), ': ', $thrown->getMessage(), "\n";
            print_r(array_filter($thrown->getTrace(), $own));

            if (PHP_VERSION_ID >= 80200) {
                var_dump($thrown);
                echo $thrown;
            }
        }
    }
}

try {
    $objects['store'] = Store::open($dsn);
    echo $objects['store']->dsn();
} catch (McpState\Exception\InvalidDsn) {
}

foreach ($objects as $name => $object) {
    echo "\n== $name\n";
    var_dump($object);
    print_r($object);
    var_dump((array) $object);
    debug_zval_dump($object);
    var_dump(get_mangled_object_vars($object));
    echo json_encode($object);

    try {
        @var_export($object);
    } catch (Throwable $e) {
        echo $e->getMessage();
    }

    try {
        echo serialize($object), "\n$name: serialized\n";
    } catch (Throwable $e) {
        echo "\nrefused: ", $e->getMessage();
    }
}
echo "\nend\n";
"""


class Secrets(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        directory = tempfile.TemporaryDirectory(prefix="mcp-state-secrets-")
        cls.addClassCleanup(directory.cleanup)
        test_c_abi.OneStoreForAll.directory = cls.directory = Path(directory.name)
        script = cls.directory / "dumps.php"
        script.write_text(f"<?php {PHP_DUMPS}")
        command = str(command_line())
        php = [program("PHP", "php"), "-n", "-d", "display_errors=stderr", "-d", "zend.exception_ignore_args=0"]
        php += ["-d", "zend.exception_string_param_max_len=1000"]
        extension = [*php, "-d", f"extension={EXTENSION}"]
        ini = ["-d", 'mcp_state.dsn="{dsn}"']
        c = str(test_c_abi.OneStoreForAll.compile("elicit"))
        cls.outputs = {
            "sessions": [command, "--store", "{dsn}", "sessions"],
            "sessions as JSON": [command, "--store", "{dsn}", "sessions", "--json"],
            "stats": [command, "--store", "{dsn}", "stats"],
            "metrics": [command, "--store", "{dsn}", "stats", "--prometheus"],
            "doctor": [command, "--store", "{dsn}", "doctor"],
            "doctor as JSON": [command, "--store", "{dsn}", "doctor", "--json"],
            "gc": [command, "--store", "{dsn}", "gc"],
            "reset": [command, "--store", "{dsn}", "reset", "--yes"],
            "--ri": [*extension, *ini, "--ri", "mcp_state"],
            "phpinfo": [*extension, *ini, "-r", "phpinfo(INFO_MODULES);"],
            "PHP": [*extension, str(script), str(ROOT), "{dsn}"],
            "PHP with FFI": [*php, "-d", "extension=ffi", "-d", "ffi.enable=1", str(script), str(ROOT), "{dsn}"],
            "C": [c, "ask", "{dsn}"],
        }
        cls.env = {name: value for name, value in os.environ.items() if not name.startswith(("PHP", "MCP_"))}
        cls.env["MCP_STATE_LIBRARY"] = str(test_c_abi.LIBRARY)

    def said(self, output: str, dsn: str) -> str:
        command = [word.replace("{dsn}", dsn) for word in self.outputs[output]]
        process = subprocess.run(command, env=self.env, capture_output=True, text=True, errors="replace", timeout=60)
        return process.stdout + process.stderr

    def test_no_output_has_a_password(self) -> None:
        for dsn in UNDERSTOOD + NOT_UNDERSTOOD:
            for output in self.outputs:
                with self.subTest(dsn=dsn, output=output):
                    said = self.said(output, dsn)
                    self.assertTrue(said.strip(), "it says something")
                    at = said.find(SECRET)
                    self.assertEqual(-1, at, said[max(0, at - 300) : at + 60])
                    if output.startswith("PHP"):
                        self.assertIn("\nend\n", said)
                        self.assertNotIn(": serialized", said)
                        self.assertNotIn("nothing is thrown", said)

    def test_a_dsn_that_does_not_parse_shows_its_scheme_only(self) -> None:
        for dsn in NOT_UNDERSTOOD:
            for output in ("--ri", "phpinfo"):
                with self.subTest(dsn=dsn, output=output):
                    scheme = dsn.split("://")[0] + "://…" if dsn.startswith(("redis://", "redis+unix://")) else "…"
                    line = next(line for line in self.said(output, dsn).splitlines() if line.startswith("default store"))
                    self.assertEqual(f"default store => {scheme}", line)


if __name__ == "__main__":
    unittest.main()
