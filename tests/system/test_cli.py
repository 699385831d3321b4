"""The command `mcp-state` on stores that PHP processes use: it sees what they store, and never gets in their way."""

from __future__ import annotations

import json
import os
import pty
import pwd
import re
import resource
import select
import shutil
import signal
import subprocess
import tempfile
import unittest
import uuid
from pathlib import Path

from lib.redis import Redis
from lib.servers import DEADLINE, EXTENSION, ROOT, SETUP, program, unprivileged, wait_until

# Reads a line of PHP, runs it, answers with a line of JSON. `$store` is the store.
PHP_SHELL = r"""
require getenv('TEST_ROOT') . '/php/autoload.php';
use McpState\{Store, OwnerKind, DuplicatePolicy};
$store = Store::open(getenv('TEST_DSN'));
while (($line = fgets(STDIN)) !== false) {
    try {
        echo json_encode(eval($line)), "\n";
    } catch (Throwable $e) {
        echo json_encode(get_class($e) . ': ' . $e->getMessage()), "\n";
    }
}
"""


def build() -> Path:
    """The command: MCP_STATE_CLI, or a debug build of what is checked out."""
    if given := os.environ.get("MCP_STATE_CLI"):
        return Path(given)
    cargo = [str(ROOT / "scripts" / "cargo"), "build", "--quiet", "--package", "mcp-state-cli"]
    subprocess.run(cargo, check=True)
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target" / f"php-{SETUP['PHP_ABI']}"))
    return Path(target) / "debug" / "mcp-state"


class Php:
    """A process that uses the store; as an unprivileged user when root runs the tests."""

    def __init__(self, dsn: str, directory: Path, user: str | None = None) -> None:
        # Copies: the repository may lie where that user may not look.
        if not (directory / "php").exists():
            ignored = shutil.ignore_patterns("tests", "target", "ext")
            shutil.copytree(ROOT / "php", directory / "php", ignore=ignored)
            shutil.copy(EXTENSION, directory / "mcp_state.so")
        account = pwd.getpwnam(user) if user else None
        identity = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []} if account else {}
        command = [program("PHP", "php"), "-n", "-d", f"extension={directory}/mcp_state.so", "-r", PHP_SHELL]
        env = {"PATH": os.environ["PATH"], "TEST_ROOT": str(directory), "TEST_DSN": dsn}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/", env=env, text=True, bufsize=1, **identity
        )

    def run(self, code: str):
        self.process.stdin.write(code + "\n")
        ready, _, _ = select.select([self.process.stdout], [], [], DEADLINE)
        if not ready:
            raise TimeoutError(f"no answer within {DEADLINE:g} s: {code}")
        return json.loads(self.process.stdout.readline())

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class CommandLine(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        # The owner of a store runs the command, too.
        directory = tempfile.TemporaryDirectory(prefix="mcp-state-cli-", dir="/tmp")
        cls.addClassCleanup(directory.cleanup)
        cls.shared = Path(directory.name)
        cls.shared.chmod(0o755)
        cls.command = Path(shutil.copy(build(), cls.shared / "mcp-state"))

    def setUp(self) -> None:
        self.user = unprivileged()
        self.data = self.shared / f"data-{uuid.uuid4().hex}"
        self.data.mkdir(mode=0o700)
        if self.user:
            shutil.chown(self.data, self.user)
        self.addCleanup(shutil.rmtree, self.data)
        self.dsn = f"file://{self.data}/store?durability=none"

    def php(self, dsn: str | None = None, user: str | None = None) -> Php:
        process = Php(dsn or self.dsn, self.shared, user or self.user)
        self.addCleanup(process.end)
        return process

    def mcp_state(self, *arguments: str, status: int = 0, store: str | None = None, **options) -> str:
        """Standard output of the command, or standard error where it is to fail."""
        env = {"PATH": os.environ["PATH"]} | options.pop("env", {})
        chosen = ["--store", self.dsn if store is None else store] if store != "" else []
        done = subprocess.run(
            [self.command, *chosen, *arguments],
            capture_output=True, text=True, env=env, timeout=DEADLINE, stdin=subprocess.DEVNULL, **options,
        )
        self.assertEqual(status, done.returncode, f"{arguments}: {done.stdout}{done.stderr}")
        return done.stderr if status and not done.stdout else done.stdout

    def json(self, *arguments: str, **options):
        return json.loads(self.mcp_state(*arguments, "--json", **options))

    # -- what it shows

    def test_it_sees_what_php_stores_while_php_goes_on(self) -> None:
        php = self.php()
        session = php.run("return ($s = $store->createSession())->id;")
        request = php.run(
            "$o = $s->attach(); $s->set('client_info.name', 'inspector'); $o->beginRequest(7);"
            " return ($p = $o->sendRequest(['jsonrpc' => '2.0', 'method' => 'elicitation/create']))->id;"
        )
        [listed] = self.json("sessions", "--full")
        self.assertEqual((session, 1, 1, 1, 1), tuple(listed[key] for key in ("id", "owners", "pending", "in_flight", "queued")))
        shown = self.json("show", session, "--full")
        self.assertEqual({"client_info": {"name": "inspector"}}, shown["attributes"])
        [owner] = shown["owners"]
        self.assertEqual((php.process.pid, "alive", "stream"), (owner["pid"], owner["process"], owner["kind"]))
        [in_flight] = owner["in_flight"]
        [pending] = owner["pending"]
        for begun in (owner, in_flight, pending):
            self.assertIsInstance(begun.pop("for_ms"), int, "since when it is there")
        self.assertEqual({"id": 7, "cancelled": False}, in_flight)
        self.assertEqual("elicitation/create", pending["method"])
        self.assertRegex(self.mcp_state("show", session), r"pending +\d+  elicitation/create  for \d+ (ms|s)  waiting")
        self.assertEqual((request, "waiting", None), (pending["id"], pending["state"], pending["response"]))
        self.assertIn("elicitation/create", owner["queued"][0])
        php.run("return $s->deliverResponse($p->id, '{\"ok\":true}')->delivered;")
        [pending] = self.json("show", session, "--full")["owners"][0]["pending"]
        self.assertEqual(("answered", '{"ok":true}'), (pending["state"], pending["response"]))
        # Nothing that was looked at is gone.
        self.assertEqual({"ok": True}, php.run("return $p->claim()->json();"))

    def test_ids_and_payloads_are_shown_short_unless_they_are_asked_for_whole(self) -> None:
        php = self.php()
        session = php.run("return ($s = $store->createSession())->id;")
        php.run("$s->set('key', str_repeat('secret', 50)); $s->attach()->enqueueOutgoing('\"' . str_repeat('z', 200) . '\"');")
        for arguments in (("sessions",), ("sessions", "--json"), ("show", session), ("show", session, "--json"), ("watch", "--once")):
            text = self.mcp_state(*arguments)
            self.assertIn(session[:8], text)
            self.assertNotIn(session, text)
            self.assertNotIn("z" * 61, text)
            self.assertNotIn("secret" * 11, text)
        self.assertIn(session, self.mcp_state("sessions", "--full"))
        self.assertIn("z" * 200, self.mcp_state("show", session[:8], "--full"))

    def test_what_is_stored_cannot_write_to_the_terminal(self) -> None:
        php = self.php()
        session = php.run("return ($s = $store->createSession())->id;")
        php.run("$s->attach()->enqueueOutgoing(\"\\x1b[2Jx\\x07\");")
        text = self.mcp_state("show", session, "--full")
        self.assertIn("[2Jx", text)
        self.assertNotRegex(text, "[\x07\x1b]")

    def test_statistics_are_for_people_programs_and_prometheus(self) -> None:
        php = self.php()
        php.run("$s = $store->createSession(); $s->attach(); $s->deliverResponse(1, '1'); return 1;")
        stats = self.json("stats")
        self.assertEqual((1, 1, 1), (stats["sessions"], stats["totals"]["owners"], stats["counters"]["late_unknown"]))
        self.assertRegex(self.mcp_state("stats"), r"sessions +1\n")
        samples = self.mcp_state("stats", "--prometheus")
        label = f'store="file://{self.data}/store",user="{pwd.getpwuid(self.data.stat().st_uid).pw_name}"'
        self.assertIn(f"mcp_state_sessions{{{label}}} 1\n", samples)
        self.assertIn(f'mcp_state_late_responses_total{{{label},reason="unknown"}} 1\n', samples)
        for line in samples.splitlines():
            self.assertRegex(line, r"^(# (HELP|TYPE) mcp_state_\w+ .+|mcp_state_\w+\{[^}]+\} \d+)$")

    def test_who_waits_is_shown_with_the_limit_and_the_refusals_by_every_output(self) -> None:
        dsn = f"{self.dsn}&max_waiting=2"
        php = self.php(dsn)
        php.run("$a = $store->waitingRoom()->attach(); $b = $store->waitingRoom()->attach(); return 1;")
        self.assertIn("max_waiting", php.run("return $store->waitingRoom()->attach();"))
        stats = self.json("stats", store=dsn)
        self.assertEqual((2, 2, 1), (stats["waiting"], stats["max_waiting"], stats["counters"]["waiting_refused"]))
        self.assertEqual((0, []), (stats["sessions"], self.json("sessions", store=dsn)))
        samples = self.mcp_state("stats", "--prometheus", store=dsn)
        for name, value in (("waiting", 2), ("max_waiting", 2), ("waiting_refused_total", 1)):
            self.assertRegex(samples, rf"(?m)^mcp_state_{name}{{[^}}]+}} {value}$")
        watch = subprocess.Popen([self.command, "--store", dsn, "watch"], stdout=subprocess.PIPE, text=True)
        try:
            self.assertIn("waiting 2  max_waiting 2  waiting_refused 1", watch.stdout.readline())
        finally:
            watch.terminate()
            watch.wait(DEADLINE)
            watch.stdout.close()

    # -- what it changes

    def test_a_session_that_is_destroyed_is_gone_for_php_at_once(self) -> None:
        php = self.php()
        session = php.run("return ($s = $store->createSession(principal: 'somebody'))->id;")
        self.mcp_state("destroy", session[:12])
        self.assertIsNone(php.run(f"return $store->openSession('{session}', 'somebody');"))
        self.assertIn("SessionNotFound", php.run("return $s->attach();"))
        self.assertIn("there is no session", self.mcp_state("destroy", session, status=3))

    def test_collection_removes_what_expired_and_looking_keeps_nothing_alive(self) -> None:
        php = self.php()
        expired = php.run("return $store->createSession(ttlMs: 1)->id;")
        kept = php.run("return $store->createSession()->id;")
        wait_until(lambda: self.json("show", expired)["expires_in_ms"] == 0, "the session has expired")
        self.assertEqual(2, len(self.json("sessions")))
        self.assertIn("1 expired sessions removed", self.mcp_state("gc"))
        self.assertEqual([kept], [session["id"] for session in self.json("sessions", "--full")])

    def test_a_reset_asks_first_and_php_goes_on_with_the_empty_store(self) -> None:
        php = self.php()
        session = php.run("return $store->createSession()->id;")
        self.assertIn("--yes", self.mcp_state("reset", status=2))
        self.assertEqual(1, len(self.json("sessions")))
        self.mcp_state("reset", "--yes")
        self.assertEqual([], self.json("sessions"))
        wait_until(lambda: php.run(f"return McpState\\Store::open(getenv('TEST_DSN'))->openSession('{session}');") is None,
                   "PHP has moved on")

    # -- which store

    def test_it_never_makes_a_store(self) -> None:
        for command in (("sessions",), ("gc",), ("reset", "--yes"), ("show", "x"), ("watch", "--once")):
            self.assertIn("there is no store", self.mcp_state(*command, status=3))
            name = f"absent-{uuid.uuid4().hex}"
            self.assertIn("there is no store", self.mcp_state(*command, status=3, store=f"shm://{name}"))
            self.assertEqual([], [*Path("/dev/shm").glob(f"mcp-state-*/{name}")])
        self.assertEqual([], list(self.data.iterdir()))

    def test_without_a_name_it_lists_the_stores_it_finds(self) -> None:
        name = f"listed-{uuid.uuid4().hex}"
        self.php(f"shm://{name}").run("return $store->createSession()->id;")
        self.addCleanup(self.remove_shared, name)
        text = self.mcp_state("sessions", status=2, store="")
        self.assertIn(f"--store shm://{name}", text)
        text = self.mcp_state("sessions", status=2, store="", env={"MCP_STATE_DSN": "memory://"})
        self.assertIn("inside one process", text)

    def remove_shared(self, name: str) -> None:
        for path in Path("/dev/shm").glob(f"mcp-state-*/{name}"):
            shutil.rmtree(path)

    def test_names_that_are_no_store_s_are_not_listed(self) -> None:
        place = self.data / "run"
        for name in ("evil\x1b[2J", "two\nlines", ".hidden", "x" * 300, "good"):
            if len(name) < 256:
                (place / name).mkdir(parents=True)
                (place / name / "stamp").write_text("{}")
        (place / "link").symlink_to(place / "good")
        place.chmod(0o755)
        self.data.chmod(0o755)
        text = self.mcp_state("sessions", status=2, store="", env={"MCP_STATE_PRETEND_RUN": str(place)})
        self.assertIn("--store shm://good", text)
        for name in ("evil", "\x1b", "two", "hidden", "link"):
            self.assertNotIn(name, text)

    def test_a_stamp_that_is_no_file_is_neither_waited_for_nor_read_on_and_on(self) -> None:
        php = self.php()
        php.run("return $store->createSession()->id;")
        php.end()
        stamp = self.data / "store" / "stamp"
        owner = stamp.stat()
        for what, make in (
            ("a pipe", lambda: os.mkfifo(stamp)),
            ("a link to /dev/zero", lambda: stamp.symlink_to("/dev/zero")),
            ("a directory", stamp.mkdir),
        ):
            stamp.unlink() if not stamp.is_dir() else stamp.rmdir()
            make()
            os.chown(stamp, owner.st_uid, owner.st_gid, follow_symlinks=False)
            for store in (self.dsn, str(self.data / "store")):
                with self.subTest(what, store=store):
                    self.mcp_state("sessions", status=1, store=store)
                    found = self.findings("--php", "/nonexistent", "--pool", self.pool(50), status=1, store=store)
                    self.assertIn("cannot be read", found["stamp"][0]["seen"])

    def test_a_store_is_named_by_its_path_too(self) -> None:
        session = self.php().run("return $store->createSession()->id;")
        [shown] = self.json("sessions", "--full", store=str(self.data / "store"))
        self.assertEqual(session, shown["id"])
        self.assertIn("there is no store", self.mcp_state("sessions", status=3, store=str(self.data / "absent")))

    def test_root_becomes_the_owner_and_says_when_it_must_be_told_which(self) -> None:
        if not self.user:
            self.skipTest("only root becomes another user")
        name = f"owned-{uuid.uuid4().hex}"
        self.addCleanup(self.remove_shared, name)
        account = pwd.getpwnam(self.user)
        first = self.php(f"shm://{name}").run("return $store->createSession()->id;")
        [shown] = self.json("sessions", "--full", store=f"shm://{name}")
        self.assertEqual(first, shown["id"])
        self.mcp_state("gc", store=f"shm://{name}")
        [path] = Path("/dev/shm").glob(f"mcp-state-*/{name}")
        self.assertEqual({(account.pw_uid, account.pw_gid)}, {(p.stat().st_uid, p.stat().st_gid) for p in path.rglob("*")})
        other = self.php(f"shm://{name}", user="games").run("return $store->createSession()->id;")
        self.assertIn("--user", self.mcp_state("sessions", status=2, store=f"shm://{name}"))
        [shown] = self.json("sessions", "--full", "--user", "games", store=f"shm://{name}")
        self.assertEqual(other, shown["id"])

    def test_root_finds_a_store_that_a_group_shares_and_leaves_it_the_group_s(self) -> None:
        if not self.user:
            self.skipTest("only root becomes another user")
        name = f"grouped-{uuid.uuid4().hex}"
        self.addCleanup(self.remove_shared, name)
        account = pwd.getpwnam(self.user)
        php = self.php(f"shm://{name}?group={account.pw_gid}")
        session = php.run("return $store->createSession()->id;")
        for dsn in (f"shm://{name}", f"shm://{name}?group={account.pw_gid}"):
            self.assertEqual([session], [shown["id"] for shown in self.json("sessions", "--full", store=dsn)])
        self.mcp_state("reset", "--yes", store=f"shm://{name}")
        self.assertEqual([], self.json("sessions", store=f"shm://{name}"))
        [path] = Path("/dev/shm").glob(f"mcp-state-*/{name}")
        self.assertEqual({account.pw_gid}, {p.stat().st_gid for p in path.rglob("*")})
        self.assertIsInstance(php.run("return McpState\\Store::open(getenv('TEST_DSN'))->createSession()->id;"), str)

    def test_a_store_of_another_user_is_refused_to_those_who_are_not_root(self) -> None:
        if not self.user:
            self.skipTest("only root becomes another user")
        self.php().run("return $store->createSession()->id;")
        games = pwd.getpwnam("games")
        identity = {"user": games.pw_uid, "group": games.pw_gid, "extra_groups": [], "cwd": "/"}
        self.mcp_state("sessions", status=1, **identity)
        self.assertIn("root", self.mcp_state("sessions", "--user", "root", status=2, **identity))

    def test_what_it_does_not_understand_has_status_2_and_names_the_value(self) -> None:
        self.assertIn("mysql", self.mcp_state("sessions", status=2, store="mysql://x"))
        self.assertIn("unlucky", self.mcp_state("unlucky", status=2))
        self.assertIn("max_owner", self.mcp_state("stats", status=2, store="shm://x?max_owner=1"))

    def test_the_password_of_a_dsn_is_never_shown(self) -> None:
        for dsn in ("redis://user:secret@127.0.0.1:1?retry_ms=1", "redis://user:secret@h:x", "redis:user:secret@h"):
            for arguments in (("sessions",), ("stats", "--json"), ("doctor",), ("reset", "--yes")):
                done = subprocess.run(
                    [self.command, *arguments], capture_output=True, text=True, timeout=DEADLINE, stdin=subprocess.DEVNULL,
                    env={"PATH": os.environ["PATH"], "MCP_STATE_DSN": dsn},
                )
                self.assertNotEqual(0, done.returncode, arguments)
                self.assertNotIn("secret", done.stdout + done.stderr, arguments)

    # -- nobody is delayed

    def test_a_watch_that_hangs_or_is_killed_delays_no_writer(self) -> None:
        php = self.php()
        php.run("$s = []; for ($i = 0; $i < 50; ++$i) { $s[$i] = $store->createSession(); } return 1;")
        write = "for ($i = 0; $i < 2000; ++$i) { $s[$i % 50]->set('n', str_repeat('x', 2000) . $i); } return $i;"
        for end in (signal.SIGSTOP, signal.SIGKILL, signal.SIGTERM):
            # Its output is a pipe that nobody reads, too.
            watch = subprocess.Popen([self.command, "--store", self.dsn, "watch"], stdout=subprocess.PIPE, text=True)
            try:
                self.assertIn("sessions 50", watch.stdout.readline())
                watch.send_signal(end)
                self.assertEqual(2000, php.run(write))
                another = self.php()
                self.assertEqual(2, another.run("$x = $store->createSession(); $x->set('a', 1); $x->destroy(); return 2;"))
                if end == signal.SIGTERM:
                    self.assertEqual(0, watch.wait(DEADLINE))
            finally:
                watch.kill()
                watch.wait()
                watch.stdout.close()
        self.assertIn("nothing contradicts itself", self.mcp_state("doctor", "--deep", "--php", "/nonexistent", "--pool", self.pool(50)))

    def test_watch_writes_a_line_a_second_with_rates_where_there_is_no_terminal(self) -> None:
        php = self.php()
        php.run("$s = $store->createSession(); $o = $s->attach(); return 1;")
        watch = subprocess.Popen([self.command, "--store", self.dsn, "watch"], stdout=subprocess.PIPE, text=True)
        try:
            self.assertRegex(watch.stdout.readline(), "sessions 1  owners 1  pending 0 .* late 0 ")
            php.run("$o->sendRequest(['jsonrpc' => '2.0', 'method' => 'x']); $s->deliverResponse(1, '1'); return 1;")
            line = watch.stdout.readline()
            while "late 1" not in line:
                line = watch.stdout.readline()
            self.assertRegex(line, r"pending 1 .* created/s \d")
            self.assertNotIn("\x1b", line)
        finally:
            watch.terminate()
            self.assertEqual(0, watch.wait(DEADLINE))
            watch.stdout.close()

    def test_watch_gives_the_terminal_back_when_it_is_suspended_or_ended(self) -> None:
        self.php().run("$s = $store->createSession(); return 1;")
        terminal, inner = pty.openpty()
        self.addCleanup(os.close, terminal)
        watch = subprocess.Popen([self.command, "--store", self.dsn, "watch"], stdin=inner, stdout=inner, stderr=inner)
        os.close(inner)

        def read_until(text: str) -> str:
            seen = ""
            while text not in seen:
                ready, _, _ = select.select([terminal], [], [], DEADLINE)
                self.assertTrue(ready, f"{text!r} after {seen!r}")
                seen += os.read(terminal, 65536).decode()
            return seen

        try:
            self.assertIn("\x1b[?1049h", read_until("SESSION"))
            for _ in range(2):
                watch.send_signal(signal.SIGTSTP)
                read_until("\x1b[?1049l")
                _, status = os.waitpid(watch.pid, os.WUNTRACED)
                self.assertTrue(os.WIFSTOPPED(status), status)
                watch.send_signal(signal.SIGCONT)
                self.assertIn("\x1b[?1049h", read_until("SESSION"))
            watch.send_signal(signal.SIGINT)
            read_until("\x1b[?1049l")
            self.assertEqual(0, watch.wait(DEADLINE))
        finally:
            watch.kill()
            watch.wait()

    # -- doctor

    def pool(self, children: int) -> str:
        file = self.shared / f"pool-{children}.conf"
        file.write_text(f"[www]\nuser = {self.user or pwd.getpwuid(os.getuid()).pw_name}\npm = static\npm.max_children = {children}\n")
        return str(file)

    def findings(self, *arguments: str, status: int = 0, **options) -> dict[str, list[dict]]:
        found: dict[str, list[dict]] = {}
        for finding in self.json("doctor", *arguments, status=status, **options):
            found.setdefault(finding["what"], []).append(finding)
        return found

    def php_with_extension(self) -> str:
        wrapper = self.shared / "php-with-extension"
        wrapper.write_text(f'#!/bin/sh\nexec {program("PHP", "php")} -n -d extension={self.shared}/mcp_state.so "$@"\n')
        wrapper.chmod(0o755)
        return str(wrapper)

    def test_doctor_finds_nothing_wrong_with_a_store_in_use(self) -> None:
        php = self.php()
        php.run("$o = $store->createSession()->attach(); return 1;")
        found = self.findings("--deep", "--php", self.php_with_extension(), "--pool", self.pool(50))
        self.assertNotIn("wrong", [finding["level"] for findings in found.values() for finding in findings])
        self.assertIn("1 of living processes, 0 of processes that have ended", found["owners"][0]["seen"])
        self.assertIn("nothing contradicts itself", found["contents"][0]["seen"])
        self.assertRegex(found["stamp"][0]["seen"], r"^format \d+, ")
        self.assertIn("pm.max_children = 50", found["pool"][0]["seen"])
        version = re.search('^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
        self.assertIn(f"mcp_state {version}", found["extension"][0]["seen"])

    def test_doctor_finds_what_is_wrong_says_how_to_mend_it_and_ends_with_1(self) -> None:
        php = self.php()
        php.run("$o = $store->createSession()->attach(); return 1;")
        php.end()
        bare = self.shared / "php-without"
        bare.write_text(f'#!/bin/sh\nexec {program("PHP", "php")} -n "$@"\n')
        bare.chmod(0o755)
        found = self.findings("--php", str(bare), "--pool", self.pool(5), "--pool", self.pool(5000), status=1)
        self.assertIn("1 of processes that have ended", found["owners"][0]["seen"])
        self.assertIn("gc", found["owners"][0]["mend"])
        self.assertEqual(["note", "wrong"], [finding["level"] for finding in found["pool"]])
        self.assertIn("maxWaiting", found["pool"][0]["mend"])
        self.assertIn("not installed", found["extension"][0]["seen"])
        stamp = self.data / "store" / "stamp"
        stamp.write_text("not a stamp")
        found = self.findings("--php", self.php_with_extension(), "--pool", self.pool(50), status=1)
        self.assertEqual("wrong", found["stamp"][0]["level"])
        self.assertIn("sessions are unchanged", found["stamp"][0]["mend"])
        self.assertNotIn("reset", found["stamp"][0]["mend"], "whether the sessions are damaged is not known")

    def test_doctor_names_what_bounds_the_store(self) -> None:
        self.php().run("return $store->createSession()->id;")
        arguments = ("--php", self.php_with_extension(), "--pool", self.pool(50))
        [space] = self.findings(*arguments)["space"]
        self.assertIn(f" left by the file system of {self.data}/store", space["seen"])
        limit = 8 << 20
        limited = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))}
        for option, bound in (("", True), ("&max_store_bytes=1M", False)):
            space, *notes = self.findings(*arguments, store=self.dsn + option, **limited)["space"]
            self.assertEqual("ok", space["level"], space)
            self.assertIn(f" left by RLIMIT_FSIZE with its {limit} bytes for a file;", space["seen"])
            if bound:
                [note] = notes
                self.assertEqual("note", note["level"], note)
                self.assertRegex(note["seen"], r"the store may use 4\.0 MiB: half of .*RLIMIT_FSIZE")
                self.assertIn("add space", note["mend"])
            else:
                self.assertEqual([], notes, "max_store_bytes is less than what RLIMIT_FSIZE leaves")

    def test_doctor_finds_a_data_file_that_has_outgrown_its_store_and_who_keeps_it(self) -> None:
        store = f"{self.dsn}&max_attribute_bytes=12M"
        php = self.php(store)
        session = php.run("return ($s = $store->createSession())->id;")
        for key in range(5):
            self.assertEqual(1, php.run(f"$s->set('k{key}', str_repeat('x', 2 << 20)); return 1;"))
        command = [self.command, "--store", store, "show", session]
        reader = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={"MCP_STATE_FAULT": "in-read:2:stop"})
        try:
            os.waitid(os.P_PID, reader.pid, os.WSTOPPED | os.WNOWAIT)
            self.assertTrue(php.run("for ($i = 0; $i < 30; $i++) { $store->createSession(); } return $s->destroy();"))
            # 10 MiB are more than twice the limit, and those who go by it use little of it.
            looked = {"store": f"{self.dsn}&max_store_bytes=4M"}
            arguments = ("--php", self.php_with_extension(), "--pool", self.pool(50))
            [space] = self.findings(*arguments, status=1, **looked)["space"]
            self.assertEqual("wrong", space["level"], space)
            self.assertRegex(space["seen"], r"of 4\.0 MiB used; the data file takes 1\d MiB;")
            self.assertIn(f"process {reader.pid} was stopped during a read transaction", space["mend"])
        finally:
            reader.kill()
            reader.wait()
        [space] = self.findings(*arguments, status=1, **looked)["space"]
        self.assertIn("`mcp-state gc` gives back", space["mend"])
        self.mcp_state("gc", **looked)
        [space] = self.findings(*arguments, **looked)["space"]
        self.assertEqual("ok", space["level"], space)

    def test_a_store_of_another_container_is_left_alone(self) -> None:
        php = self.php()
        php.run("return $store->createSession()->id;")
        php.end()
        stamp = self.data / "store" / "stamp"
        text = stamp.read_text()
        its = json.loads(text)["pid_namespace"]
        stamp.write_text(text.replace(str(its), "4711"))
        for command in (("sessions",), ("watch", "--once"), ("gc",)):
            self.assertIn("another container", self.mcp_state(*command, status=1))
        self.assertIn('"pid_namespace": 4711', stamp.read_text())

    # -- the rest

    def test_bench_measures_in_a_store_of_its_own_and_leaves_nothing(self) -> None:
        directory = self.data / "bench"
        directory.mkdir()
        measured = self.json("bench", "--time", "20", "--directory", str(directory), store="")
        self.assertGreater(measured["rounds"], 0)
        self.assertGreater(measured["wake"]["count"], 0)
        self.assertEqual([], list(directory.iterdir()))

    def test_a_bench_that_is_interrupted_leaves_nothing_either(self) -> None:
        directory = self.data / "bench"
        directory.mkdir()
        command = [self.command, "bench", "--time", "60000", "--directory", str(directory)]
        bench = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            wait_until(lambda: any(directory.glob("*/store/stamp")), "it is at work")
            bench.send_signal(signal.SIGINT)
            self.assertEqual(1, bench.wait(DEADLINE), bench.stderr.read())
        finally:
            bench.kill()
            bench.wait()
            bench.stderr.close()
        self.assertEqual([], list(directory.iterdir()))

    def test_completions_and_man_pages_name_every_command(self) -> None:
        for shell in ("bash", "zsh", "fish"):
            self.assertIn("doctor", self.mcp_state("completions", shell, store=""))
        pages = self.data / "man"
        pages.mkdir()
        self.mcp_state("man", str(pages), store="")
        names = {page.name for page in pages.iterdir()}
        self.assertTrue({"mcp-state.1", "mcp-state-doctor.1", "mcp-state-watch.1"} <= names, names)
        self.assertIn("Exit status", (pages / "mcp-state.1").read_text())


class DoctorOnRedis(unittest.TestCase):
    """What of a Redis server's settings would cost sessions is said."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.command = build()

    def findings(self, redis: Redis) -> dict[str, str]:
        """Levels by what was looked at."""
        command = [self.command, "--store", redis.dsn(), "doctor", "--json", "--php", program("PHP", "php")]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)
        return {finding["what"]: finding["level"] for finding in json.loads(answer.stdout)}

    def test_a_look_at_a_store_that_is_not_there_makes_none(self) -> None:
        with Redis() as redis:
            for arguments in (["sessions"], ["stats"], ["stats", "--json"], ["show", "x"], ["watch"], ["gc"]):
                command = [self.command, "--store", redis.dsn("prefix=typo:"), *arguments]
                done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)
                self.assertEqual(3, done.returncode, f"{arguments}: {done.stderr}")
                self.assertIn("typo:", done.stderr)
            found = self.findings(redis)
            self.assertEqual("wrong", found["opening"])
            self.assertEqual("", redis.ask("KEYS", "*"))

    def test_a_user_without_info_is_told_so_and_not_to_empty_the_store(self) -> None:
        with Redis() as redis:
            redis.ask("SET", "mcp-state:{layout}", "1")
            for rights, advice in (("-info", "+info"), ("resetchannels", "&mcp-state:*"), ("-hset", "+hset")):
                redis.ask("ACL", "SETUSER", "mcp", "reset", "on", ">SECRET", "~mcp-state:*", "&mcp-state:*", "+@all", rights)
                dsn = redis.dsn().replace("://", "://mcp:SECRET@")
                command = [self.command, "--store", dsn, "doctor", "--deep", "--json", "--php", program("PHP", "php")]
                done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)
                findings = {finding["what"]: finding for finding in json.loads(done.stdout)}
                self.assertIn(f"ACL SETUSER mcp {advice}", findings["rights"]["mend"])
                self.assertNotIn("reset", done.stdout)

    def test_eviction_and_a_missing_limit_are_said_and_good_settings_are_good(self) -> None:
        with Redis("--maxmemory-policy", "allkeys-lru") as redis:
            redis.ask("SET", "mcp-state:{layout}", "1")
            found = self.findings(redis)
            self.assertEqual(("wrong", "note", "note"), (found["eviction"], found["memory"], found["durability"]))
        with Redis("--maxmemory", "100mb", "--appendonly", "yes") as redis:
            redis.ask("SET", "mcp-state:{layout}", "1")
            found = self.findings(redis)
            self.assertEqual(("ok", "ok", "ok"), (found["eviction"], found["memory"], found["durability"]))


if __name__ == "__main__":
    unittest.main()
