"""What `mcp-state` writes: to an output that takes nothing, and for Prometheus."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import unittest
import uuid
from pathlib import Path

from lib.redis import Redis
from lib.servers import DEADLINE, program, unprivileged
from test_cli import Php, build

COMMANDS = [
    ["sessions"], ["sessions", "--json"], ["show", "SESSION"], ["show", "SESSION", "--json"], ["watch"], ["watch", "--once"],
    ["stats"], ["stats", "--json"], ["stats", "--prometheus"], ["gc"], ["doctor"], ["doctor", "--json"],
    ["bench", "--time", "10"], ["completions", "bash"], ["--help"], ["--version"], ["stats", "--help"],
    ["destroy", "SESSION"], ["reset", "--yes"],
]  # fmt: skip


def samples(text: str) -> dict[str, dict[frozenset[tuple[str, str]], int]]:
    """The series of each family, read as strictly as node_exporter's textfile collector reads them."""
    families: dict[str, dict[frozenset[tuple[str, str]], int]] = {}
    name = ""
    if not text.endswith("\n"):
        raise AssertionError("the last line has no end")
    for line in text.splitlines():
        if head := re.fullmatch(r"# HELP ([a-z_]+) (.+)", line):
            name = head[1]
            if name in families:
                raise AssertionError(f"a second family {name}")
            families[name] = {}
        elif head := re.fullmatch(r"# TYPE ([a-z_]+) (gauge|counter)", line):
            if (head[1], families[name]) != (name, {}) or (head[2] == "counter") != name.endswith("_total"):
                raise AssertionError(line)
        elif series := re.fullmatch(r'([a-z_]+)\{((?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)+)\} (\d+)', line):
            labels = re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"', series[2])
            if series[1] != name or len(dict(labels)) != len(labels) or frozenset(labels) in families[name]:
                raise AssertionError(f"not of the family {name}, or there is such a series: {line}")
            families[name][frozenset(labels)] = int(series[3])
        else:
            raise AssertionError(f"not of the format: {line}")
    return families


class Output(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        directory = tempfile.TemporaryDirectory(prefix="mcp-state-out-", dir="/tmp")
        cls.addClassCleanup(directory.cleanup)
        cls.shared = Path(directory.name)
        cls.shared.chmod(0o755)
        cls.command = Path(shutil.copy(build(), cls.shared / "mcp-state"))
        cls.user = unprivileged()
        data = cls.shared / "data"
        data.mkdir()
        if cls.user:
            shutil.chown(data, cls.user)
        cls.dsn = f"file://{data}/store?durability=none"
        cls.maker = Php(cls.dsn, cls.shared, cls.user)
        cls.addClassCleanup(cls.maker.end)

    def php(self, dsn: str, user: str | None = None) -> Php:
        process = Php(dsn, self.shared, user or self.user)
        self.addCleanup(process.end)
        return process

    def shm(self, user: str | None = None, name: str | None = None) -> str:
        """The name of a store in shared memory that holds one session, which PHP made."""
        name = name or f"output-{uuid.uuid4().hex}"
        self.addCleanup(lambda: [shutil.rmtree(path) for path in Path("/dev/shm").glob(f"mcp-state-*/{name}")])
        self.php(f"shm://{name}", user).run("return $store->createSession()->id;")
        return name

    def arguments(self, command: list[str]) -> list[str]:
        """The command line, on a store that has a session."""
        session = self.maker.run("return McpState\\Store::open(getenv('TEST_DSN'))->createSession()->id;")
        words = [session if word == "SESSION" else word for word in command]
        return [str(self.command), *words] if words[0].startswith("-") else [str(self.command), "--store", self.dsn, *words]

    def check_fails(self, command: list[str], shell: str, reason: str) -> None:
        done = subprocess.run(
            ["/bin/sh", "-c", f'exec "$0" "$@" {shell}', *self.arguments(command)], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=DEADLINE,
            env={"PATH": os.environ["PATH"], "PHP": program("PHP", "php")},
        )  # fmt: skip
        self.assertEqual(1, done.returncode, f"{command} {shell}: {done.stderr}")
        self.assertRegex(done.stderr, rf"\Amcp-state: cannot write to standard output: {reason}[^\n]*\n\Z", command)

    def test_output_to_a_full_device_is_one_line_and_status_1_for_every_command(self) -> None:
        for command in COMMANDS:
            with self.subTest(command):
                self.check_fails(command, ">/dev/full", "No space left on device")

    def test_a_closed_or_unwritable_output_is_one_line_and_status_1(self) -> None:
        for shell in (">&-", "1</dev/null"):
            for command in (["sessions"], ["stats", "--prometheus"], ["doctor"], ["completions", "zsh"], ["--version"]):
                with self.subTest(command, shell=shell):
                    self.check_fails(command, shell, "Bad file descriptor")

    def test_an_output_that_nobody_reads_ends_the_command_without_a_word(self) -> None:
        for command in COMMANDS:
            with self.subTest(command):
                reader, writer = os.pipe()
                os.close(reader)
                try:
                    done = subprocess.run(
                        self.arguments(command), stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.PIPE, timeout=DEADLINE
                    )
                finally:
                    os.close(writer)
                self.assertEqual((-signal.SIGPIPE, b""), (done.returncode, done.stderr))

    def test_errors_that_cannot_be_written_keep_their_status(self) -> None:
        for words, status in ((["sessions", "--store", "shm://absent"], 3), (["sessions", "--store", "x"], 2), (["unlucky"], 2)):
            with open("/dev/full", "w") as full:
                self.assertEqual(status, subprocess.run([self.command, *words], stderr=full, timeout=DEADLINE).returncode)

    def prometheus(self, *stores: str) -> dict[str, dict[frozenset[tuple[str, str]], int]]:
        named = [word for store in stores for word in ("--store", store)]
        done = subprocess.run(
            [self.command, *named, "stats", "--prometheus"], capture_output=True, text=True, timeout=DEADLINE, stdin=subprocess.DEVNULL
        )
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        return samples(done.stdout)

    def test_every_store_of_one_call_has_labels_of_its_own(self) -> None:
        """Prefixes and databases of one Redis, stores of shared memory, and one that is named twice."""
        with Redis() as redis:
            dsns = [redis.dsn(options) for options in ("prefix=shop:", "prefix=blog:", "prefix=shop:&db=3")]
            for sessions, dsn in enumerate(dsns, 1):
                self.php(dsn).run(f"for ($i = 0; $i < {sessions}; ++$i) {{ $store->createSession(); }} return 1;")
            families = self.prometheus(*dsns, dsns[0], f"shm://{self.shm()}", f"shm://{self.shm()}")
        found = {tuple(sorted(dict(labels).items())): value for labels, value in families["mcp_state_sessions"].items()}
        values = {}
        for labels, value in found.items():
            known = dict(labels)
            values[known.get("prefix"), known.get("db"), known["store"] if "user" in known else ""] = value
        self.assertEqual(5, len(found))
        self.assertEqual([1, 2, 3], [values[key] for key in (("shop:", "0", ""), ("blog:", "0", ""), ("shop:", "3", ""))])
        for family in families.values():
            self.assertLessEqual(len(family), 5 * (20 if any("reason" in dict(labels) for labels in family) else 1))

    def test_the_stores_of_two_users_are_told_apart_by_the_label_user(self) -> None:
        if not self.user:
            self.skipTest("only root sees the stores of two users")
        name = self.shm()
        self.shm("games", name)
        families = self.prometheus(f"shm://{name}")
        users = {dict(labels)["user"]: value for labels, value in families["mcp_state_sessions"].items()}
        self.assertEqual({self.user: 1, "games": 1}, users)
        self.assertEqual({pwd.getpwnam(user).pw_name for user in users}, set(users))

    def test_other_commands_take_one_store(self) -> None:
        done = subprocess.run(
            [self.command, "--store", f"shm://{self.shm()}", "--store", f"shm://{self.shm()}", "sessions"], capture_output=True, text=True
        )
        self.assertEqual(2, done.returncode)
        self.assertIn("name one store", done.stderr)


if __name__ == "__main__":
    unittest.main()
