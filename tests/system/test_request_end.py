"""The end of a PHP request whose Redis is lost: one operation waits for it, however many owners the request has attached; owners of
another store end all the same. What is counted is what a server gets, not time."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import unittest
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Callable

from lib.redis import Redis
from lib.servers import EXTENSION, ROOT, Nginx, PhpFpm, wait_until

LIBRARY = Path(os.environ.get("MCP_STATE_LIBRARY", ROOT / "build" / "libmcp_state.so"))
# No second try after one that got no answer, but for the one on a fresh connection after that on a kept one.
OPTIONS = "timeout_ms=700&connect_timeout_ms=700&retry_ms=700"
OWNERS = 6


class FpmWithOwners(PhpFpm):
    """One process, by the extension or by FFI."""

    def __init__(self, redis: Redis, by_extension: bool) -> None:
        env = {"MCP_STATE_DSN": redis.dsn(OPTIONS), "TEST_DATA": "{data}"}
        app = ROOT / "tests" / "system" / "ends" / "app.php"
        super().__init__(app, workers=1, env=env, extension=EXTENSION if by_extension else None)

    def prepare(self) -> None:
        if not self.extension:
            self.ini |= {"ffi.enable": 1, "mcp_state.library": self._copy(LIBRARY, "libmcp_state.so")}
        super().prepare()


class Gone:
    """A Redis that a request loses, and how often it was tried to reach it since."""

    def __init__(self, redis: Redis) -> None:
        self.redis = redis

    def lose(self) -> None:
        raise NotImplementedError

    def attempts(self) -> int:
        raise NotImplementedError


class Stopped(Gone):
    """It stands still; when it goes on it gets what was sent to it meanwhile, and counts that."""

    def _seen(self) -> int:
        statistics = self.redis.ask("INFO", "all")
        connections = re.findall(r"^total_connections_received:(\d+)", statistics, re.MULTILINE)
        scripts = re.findall(r"^cmdstat_eval(?:sha)?:calls=(\d+)", statistics, re.MULTILINE)
        return sum(map(int, connections + scripts))

    def lose(self) -> None:
        self.before = self._seen()
        os.kill(self.redis.pid, signal.SIGSTOP)

    def attempts(self) -> int:
        os.kill(self.redis.pid, signal.SIGCONT)
        asking = 0

        def has_heard_all() -> bool:
            nonlocal asking
            asking += 1
            return len(self.redis.ask("CLIENT", "LIST").splitlines()) == 1

        wait_until(has_heard_all, "the server has nobody but who asks")
        return self._seen() - self.before - asking - 1


class Killed(Gone):
    """It is killed; at its socket there is somebody who never answers."""

    def lose(self) -> None:
        self.redis.kill()
        os.unlink(self.redis.socket)
        self.silent = socket.socket(socket.AF_UNIX)
        self.silent.bind(self.redis.socket)
        os.chmod(self.redis.socket, 0o777)
        self.silent.listen(64)
        self.silent.setblocking(False)

    def attempts(self) -> int:
        with self.silent:
            for count in range(64):
                try:
                    self.silent.accept()[0].close()
                except BlockingIOError:
                    return count
        return 64


class RequestEnd(unittest.TestCase):
    def attempts(self, lost: Callable[[Redis], Gone], by_extension: bool, owners: int) -> int:
        """How often a request's end tried to reach a store that was lost, in which the request had so many owners."""
        with Redis() as redis, FpmWithOwners(redis, by_extension) as php, Nginx(php) as web, ThreadPoolExecutor() as pool:

            def get(do: str) -> str:
                with urllib.request.urlopen(f"{web.url}/?do={do}&owners={owners}", timeout=60) as response:
                    return response.read().decode()

            request = pool.submit(get, "attach")
            try:
                wait_until(lambda: (php.data / "attached").exists() or request.done(), "the owners are attached")
                gone = lost(redis)
                gone.lose()
            finally:
                (php.data / "go").touch()
            said = request.result()
            # The one process serves this after the other has ended.
            left = json.loads(get("look"))
            attempts = gone.attempts()
            self.assertEqual(("", [0] * owners), (said, left), "owners of the living store have ended")
            return attempts

    def test_a_stopped_server_is_waited_for_once_by_the_extension(self) -> None:
        # A script on the kept connection, which gets no answer, and a fresh connection.
        self.assertEqual([2, 2], [self.attempts(Stopped, True, owners) for owners in (1, OWNERS)])

    def test_a_killed_server_is_waited_for_once_by_the_extension(self) -> None:
        self.assertEqual([1, 1], [self.attempts(Killed, True, owners) for owners in (1, OWNERS)])

    def test_a_stopped_server_is_waited_for_once_by_ffi(self) -> None:
        # A script on the kept connection, which gets no answer, and a fresh connection.
        self.assertEqual([2, 2], [self.attempts(Stopped, False, owners) for owners in (1, OWNERS)])

    def test_a_killed_server_is_waited_for_once_by_ffi(self) -> None:
        self.assertEqual([1, 1], [self.attempts(Killed, False, owners) for owners in (1, OWNERS)])


if __name__ == "__main__":
    unittest.main()
