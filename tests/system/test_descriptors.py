"""No descriptor of a store survives an exec: whatever a server runs, as whatever user, has 0, 1 and 2 open and nothing of ours.

A program opens a store of each kind, uses it until everything is open that ever is (a listener's connection included), and then
starts a child that lists its own descriptors: through the extension, FFI, the C library and the command line.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest
import uuid
from pathlib import Path

from lib.redis import Redis
from lib.servers import DEADLINE, EXTENSION, ROOT, free_port, program
from test_c_abi import LIBRARY
from test_cli import build as command_line

# What it lists with is closed by then: only what was inherited can still be looked at.
LIST = """
import json, os
def is_open(descriptor):
    try:
        return os.fstat(descriptor) is not None
    except OSError:
        return False
found = [descriptor for descriptor in map(int, os.listdir("/proc/self/fd")) if is_open(descriptor)]
print(json.dumps({descriptor: os.readlink(f"/proc/self/fd/{descriptor}") for descriptor in found}))
"""

PHP_USES = r"""
require getenv('TEST_AUTOLOAD');
$store = McpState\Store::open($argv[1]);
$session = $store->createSession();
$session->set('key', 'value');
$question = $session->attach()->sendRequest(['jsonrpc' => '2.0', 'method' => 'elicitation/create'], 60_000);
$question->await(10);
$store->waitSince('topic', $store->cursor('topic'), 10);
// In each way that PHP has to start a program.
echo shell_exec(getenv('TEST_LIST')), "\n";
$process = proc_open(getenv('TEST_LIST'), [], $pipes);
proc_close($process);
"""

C_USES = r"""
#include <mcp_state.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check(mcp_state_status status, const mcp_state_error *error)
{
    if (status != MCP_STATE_OK) {
        fprintf(stderr, "%s\n", error->text);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    static const char question[] = "{\"jsonrpc\":\"2.0\",\"method\":\"elicitation/create\"}";
    mcp_state_error error;
    mcp_state_engine *engine;
    mcp_state_session *session;
    mcp_state_wait_outcome outcome;
    char owner[MCP_STATE_OWNER_SIZE];
    const size_t owner_len = sizeof owner - 1;
    int64_t id, cursor = 0;

    if (argc < 3) return 2;
    check(mcp_state_engine_open(argv[1], strlen(argv[1]), &engine, &error), &error);
    check(mcp_state_create_session(engine, NULL, 0, NULL, NULL, 0, &session, &error), &error);
    check(mcp_state_attach(session, MCP_STATE_OWNER_STREAM, NULL, owner, sizeof owner, &error), &error);
    check(mcp_state_send_request(session, owner, owner_len, question, sizeof question - 1, 60000, "", 0, &id, &error), &error);
    check(mcp_state_wait(session, owner, owner_len, MCP_STATE_INTEREST_RESOLUTION, cursor, 10, &outcome, &cursor, &error), &error);
    execv(argv[2], argv + 2);
    return 1;
}
"""


class Descriptors(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        directory = tempfile.TemporaryDirectory(prefix="mcp-state-descriptors-")
        cls.addClassCleanup(directory.cleanup)
        cls.directory = Path(directory.name)
        (cls.directory / "list.py").write_text(LIST)
        cls.lists = [sys.executable, "-I", "-S", str(cls.directory / "list.py")]
        cls.php = program("PHP", "php")
        cls.redis = Redis("--port", str(port := free_port()), "--bind", "127.0.0.1", *cls.tls())
        cls.redis.__enter__()
        cls.addClassCleanup(cls.redis.__exit__, None, None, None)
        shared = f"descriptors-{uuid.uuid4().hex}"
        cls.addClassCleanup(lambda: subprocess.run(["rm", "-r", f"/dev/shm/mcp-state-{os.geteuid()}/{shared}"]))
        cls.stores = {
            "shared memory": f"shm://{shared}",
            "a durable directory": f"file://{cls.directory}/durable",
            "a directory": f"file://{cls.directory}/plain?durability=none",
            "a write map": f"file://{cls.directory}/map?durability=none&write_map=1&max_store_bytes=4M",
            "Redis through a socket": cls.redis.dsn(),
            "Redis through TCP": f"redis://127.0.0.1:{port}",
            "Redis through TLS": f"rediss://localhost:{cls.tls_port}",
        }
        cls.env = {name: value for name, value in os.environ.items() if not name.startswith(("PHP", "MCP_"))}
        cls.env |= {
            "MCP_STATE_LIBRARY": str(LIBRARY), "SSL_CERT_FILE": str(cls.directory / "certificate"),
            "TEST_AUTOLOAD": str(ROOT / "php" / "autoload.php"), "TEST_LIST": f"exec {' '.join(cls.lists)}",
        }

    tls_port: int

    @classmethod
    def tls(cls) -> list[str]:
        """Options for a server that speaks TLS, too."""
        key, certificate = cls.directory / "key", cls.directory / "certificate"
        make = [program("OPENSSL", "openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
        make += ["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"]
        subprocess.run([*make, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
        port = free_port()
        options = ["--tls-port", str(port), "--tls-cert-file", str(certificate), "--tls-key-file", str(key)]
        options += ["--tls-ca-cert-file", str(certificate), "--tls-auth-clients", "no"]
        key.chmod(0o644)
        cls.directory.chmod(0o755)
        cls.tls_port = port
        return options

    def run_in(self, what: str, command: list[str]) -> list[dict[str, str]]:
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=DEADLINE, stdin=subprocess.DEVNULL)
        self.assertEqual(0, done.returncode, f"{what}: {done.stdout}{done.stderr}")
        return [json.loads(line) for line in done.stdout.splitlines() if line]

    def assert_only_its_own(self, what: str, found: list[dict[str, str]]) -> None:
        self.assertTrue(found, what)
        for descriptors in found:
            self.assertEqual({"0", "1", "2"}, set(descriptors), f"{what}: {descriptors}")

    def test_a_child_of_php_with_the_extension_has_none(self) -> None:
        for store, dsn in (self.stores | {"memory": "memory://"}).items():
            with self.subTest(store):
                php = [self.php, "-n", "-d", f"extension={EXTENSION}", "-d", "display_errors=stderr", "-r", PHP_USES, "--", dsn]
                found = self.run_in(store, php)
                self.assertEqual(2, len(found), store)
                self.assert_only_its_own(store, found)

    def test_a_child_of_php_with_ffi_has_none(self) -> None:
        for store, dsn in (self.stores | {"memory": "memory://"}).items():
            with self.subTest(store):
                php = [self.php, "-d", "ffi.enable=1", "-d", "display_errors=stderr", "-r", PHP_USES, "--", dsn]
                found = self.run_in(store, php)
                self.assertEqual(2, len(found), store)
                self.assert_only_its_own(store, found)

    def test_a_program_that_a_c_program_becomes_has_none(self) -> None:
        source, target = self.directory / "uses.c", self.directory / "uses"
        source.write_text(C_USES)
        command = ["cc", "-std=c99", "-o", str(target), str(source), f"-I{ROOT / 'include'}"]
        command += [f"-L{LIBRARY.parent}", "-lmcp_state", f"-Wl,-rpath,{LIBRARY.parent}"]
        subprocess.run(command, check=True)
        for store, dsn in (self.stores | {"memory": "memory://"}).items():
            with self.subTest(store):
                self.assert_only_its_own(store, self.run_in(store, [str(target), dsn, *self.lists]))

    def make(self, dsn: str) -> None:
        make = "require getenv('TEST_AUTOLOAD'); McpState\\Store::open($argv[1])->createSession();"
        self.run_in(dsn, [self.php, "-n", "-d", f"extension={EXTENSION}", "-r", make, "--", dsn])

    def test_a_child_of_the_command_has_none(self) -> None:
        # `doctor` runs PHP while it has the store open.
        told, php = self.directory / "told", self.directory / "php"
        php.write_text(f"#!/bin/sh\nexec {' '.join(self.lists)} > {told}\n")
        php.chmod(0o755)
        for store, dsn in self.stores.items():
            with self.subTest(store):
                self.make(dsn)
                subprocess.run(
                    [command_line(), "--store", dsn, "doctor", "--php", str(php)],
                    env=self.env, capture_output=True, timeout=DEADLINE, stdin=subprocess.DEVNULL,
                )
                self.assert_only_its_own(store, [json.loads(told.read_text())])
                told.unlink()

    def test_whatever_a_running_command_has_open_is_closed_by_an_exec(self) -> None:
        for store, dsn in self.stores.items():
            with self.subTest(store):
                self.make(dsn)
                watch = subprocess.Popen([command_line(), "--store", dsn, "watch"], env=self.env, stdin=subprocess.DEVNULL,
                                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
                try:
                    self.assertIn("sessions", watch.stdout.readline())
                    place = Path(f"/proc/{watch.pid}")
                    flags = {int(info.name): int(info.read_text().split("flags:")[1].split()[0], 8) for info in (place / "fdinfo").iterdir()}
                    self.assertGreater(len(flags), 3, "it has the store open")
                    kept = {fd: os.readlink(place / "fd" / str(fd)) for fd, flag in flags.items() if fd > 2 and not flag & os.O_CLOEXEC}
                    self.assertEqual({}, kept)
                finally:
                    watch.kill()
                    watch.wait()
                    watch.stdout.close()


if __name__ == "__main__":
    unittest.main()
