"""What a plain call asks of the system: counted, since counts repeat where times do not."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import unittest
from pathlib import Path

from lib.servers import ROOT, Nginx, PhpFpm, children, program, wait_until

# By path at the generation's directory; one more, at the store's, takes no path.
LOOKS = 1


class TracedPhpFpm(PhpFpm):
    """All of whose processes write down their system calls."""

    name = "php-fpm-traced"

    @property
    def trace(self) -> Path:
        return self.dir / "trace"

    def requests(self) -> list[list[str]]:
        """What the worker asked of the system after each connection that it accepted."""
        lines = [line.split(maxsplit=1) for line in self.trace.read_text(errors="replace").splitlines()]
        worker = next((pid for pid, call in lines if call.startswith("accept")), "")
        requests: list[list[str]] = []
        for call in (call for pid, call in lines if pid == worker):
            if re.match(r"(accept4?\(|<\.\.\. accept4? resumed>).*\) = \d+$", call):
                requests.append([])
            elif requests:
                requests[-1].append(call)
        return [calls for calls in requests if any(call.startswith("close(") for call in calls)]

    def stop(self) -> None:
        for pid in children(self.pid):
            os.kill(pid, signal.SIGTERM)
        super().stop()

    def command(self) -> list[str]:
        return [program("STRACE", "strace"), "-f", "-qq", "-o", str(self.trace), *super().command()]


class PlainCall(unittest.TestCase):
    def setUp(self) -> None:
        tried = subprocess.run([program("STRACE", "strace"), "-o", os.devnull, "true"], capture_output=True, text=True)
        if tried.returncode != 0:
            self.skipTest(f"strace may not trace here: {tried.stderr.strip()}")

    def test_a_plain_call_writes_nothing_and_looks_at_the_store_once(self) -> None:
        environment = {"MCP_STATE_MODE": "mcp-state", "MCP_STATE_DSN": "file://{data}/store?durability=none"}
        # Without opcache's own looks at the files of PHP code, which come every few seconds.
        server = TracedPhpFpm(
            ROOT / "benches/server/index.php", workers=1, env=environment, ini={"opcache.validate_timestamps": 0}
        )
        with server as php, Nginx(php) as nginx:
            connection = http.client.HTTPConnection(nginx.url.removeprefix("http://"))
            headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

            def post(message: dict) -> http.client.HTTPResponse:
                connection.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0"} | message), headers)
                response = connection.getresponse()
                response.text = response.read().decode()
                return response

            client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
            headers["Mcp-Session-Id"] = post({"id": 0, "method": "initialize", "params": client}).getheader("Mcp-Session-Id")
            call = {"id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": {"sentinel": "here"}}}
            store, code = f"{php.data}/store/", f"{php.dir}/repository/php/src/"
            plain: list[list[str]] = []  # the last plain calls that the trace has whole

            def is_looked_at_once() -> bool:
                self.assertIn("here", post(call).text)
                plain[:] = [calls for calls in php.requests() if any("jsonrpc" in line for line in calls)][-3:]
                return [sum(store in line for line in calls) for calls in plain] == [LOOKS] * 3

            # While a store is young its files are looked at, each by its path.
            wait_until(is_looked_at_once, "the store is looked at once in each plain call")
            connection.close()
            calls = plain[-1]
            touching = [line for line in calls if store in line]
            self.assertEqual([], [line for line in touching if not re.match(r"(statx|newfstatat|stat|lstat)\(", line)])
            # Whoever has the store open needs no path to write to it.
            writes = r"(pwrite64|pwritev|ftruncate|fallocate|fsync|fdatasync|msync|futex)\("
            self.assertEqual([], [line for line in calls if re.match(writes, line)])
            self.assertEqual([], [line for line in calls if code in line], "classes are looked for")


if __name__ == "__main__":
    unittest.main()
