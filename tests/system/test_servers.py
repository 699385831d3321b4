"""The launchers of private servers keep what they promise; all other whole-system tests rely on it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import tempfile
import threading
import unittest
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lib.servers import DEADLINE, EXTENSION, Nginx, PhpBuiltin, PhpFpm, wait_until

WORKERS = 16

# /who: what this process is. /meet?n=N: answers when N requests are inside at once. /stream: sends a line, then waits for
# the file {data}/go before it sends the second.
APP = """<?php
$data = getenv('TEST_DATA');
$until = microtime(true) + 30;
switch (parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH)) {
    case '/who':
        echo json_encode([
            'pid' => getmypid(), 'uid' => posix_geteuid(), 'extension' => extension_loaded('mcp_state'),
            'precision' => ini_get('precision'), 'body' => file_get_contents('php://input'),
            'header' => $_SERVER['HTTP_MCP_SESSION_ID'] ?? null, 'type' => $_SERVER['CONTENT_TYPE'] ?? null,
        ]);
        break;
    case '/meet':
        touch("$data/here-" . getmypid());
        while (count(glob("$data/here-*")) < $_GET['n'] && microtime(true) < $until) {
            usleep(2000);
        }
        echo count(glob("$data/here-*"));
        break;
    case '/stream':
        echo "first\\n";
        flush();
        while (!file_exists("$data/go") && microtime(true) < $until) {
            usleep(2000);
            clearstatcache();
        }
        echo "second\\n";
}
"""


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as response:
        return response.read().decode()


class Launchers(unittest.TestCase):
    def setUp(self) -> None:
        # Closed to other users, as a checkout under /root is.
        directory = tempfile.TemporaryDirectory(prefix="mcp-state-app-")
        self.addCleanup(directory.cleanup)
        self.app = Path(directory.name) / "index.php"
        self.app.write_text(APP)
        self.options = {"workers": WORKERS, "extension": None, "env": {"TEST_DATA": "{data}"}}

    def meet(self, url: str) -> None:
        with ThreadPoolExecutor(WORKERS) as pool:
            answers = list(pool.map(get, [f"{url}/meet?n={WORKERS}"] * WORKERS))
        self.assertEqual([str(WORKERS)] * WORKERS, answers)

    def stream(self, url: str, data: Path) -> None:
        port = urllib.parse.urlsplit(url).port
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
        self.addCleanup(connection.close)
        connection.request("GET", "/stream")
        response = connection.getresponse()
        self.assertEqual(b"first\n", response.readline())
        (data / "go").touch()
        self.assertEqual(b"second\n", response.readline())

    def test_sixteen_requests_are_served_at_once_behind_nginx_and_fpm(self) -> None:
        with PhpFpm(self.app, **self.options) as php, Nginx(php) as web:
            self.assertEqual(WORKERS, len(php.workers()))
            self.meet(web.url)

    def test_sixteen_requests_are_served_at_once_by_the_builtin_server(self) -> None:
        with PhpBuiltin(self.app, **self.options) as php:
            self.meet(php.url)

    def test_a_process_of_the_builtin_server_serves_again_after_its_client_left_or_it_was_killed(self) -> None:
        with PhpBuiltin(self.app, **self.options | {"workers": 1}) as php:
            connection = http.client.HTTPConnection("127.0.0.1", php.port, timeout=DEADLINE)
            connection.request("GET", "/stream")
            self.assertEqual(b"first\n", connection.getresponse().readline())
            connection.close()
            (php.data / "go").touch()
            [first] = php.workers()
            self.assertEqual(first, json.loads(get(php.url + "/who"))["pid"])
            os.kill(first, signal.SIGKILL)
            wait_until(lambda: php.workers() != [first], "the process is gone")
            self.assertNotEqual(first, json.loads(get(php.url + "/who"))["pid"])

    def test_what_php_flushes_arrives_before_the_request_ends(self) -> None:
        with PhpFpm(self.app, **self.options) as php, Nginx(php) as web:
            self.stream(web.url, php.data)
        with PhpBuiltin(self.app, **self.options) as php:
            self.stream(php.url, php.data)

    def test_requests_arrive_with_body_headers_settings_and_an_unprivileged_user(self) -> None:
        options = self.options | {"extension": EXTENSION, "ini": {"precision": 7}}
        with PhpFpm(self.app, **options) as fpm, Nginx(fpm) as web, PhpBuiltin(self.app, **options) as builtin:
            for server, url in ((fpm, web.url), (builtin, builtin.url)):
                headers = {"Content-Type": "application/json", "Mcp-Session-Id": "abc"}
                request = urllib.request.Request(url + "/who", data=b"{}", headers=headers)
                with urllib.request.urlopen(request, timeout=60) as response:
                    answer = json.load(response)
                self.assertIn(answer.pop("pid"), [server.pid, *server.workers()])
                self.assertNotEqual(0, answer.pop("uid"))
                expected = {"extension": True, "precision": "7", "body": "{}", "header": "abc", "type": "application/json"}
                self.assertEqual(expected, answer)

    def test_a_graceful_reload_serves_every_request_and_replaces_every_worker(self) -> None:
        with PhpFpm(self.app, **self.options) as php, Nginx(php) as web:
            before = php.workers()
            stop, pids = threading.Event(), []

            def call() -> None:
                while not stop.is_set():
                    pids.append(json.loads(get(web.url + "/who"))["pid"])

            with ThreadPoolExecutor(4) as pool:
                callers = [pool.submit(call) for _ in range(4)]
                try:
                    wait_until(lambda: len(pids) > 20, "callers are at work")
                    php.reload()
                    after = php.workers()
                    wait_until(lambda: set(pids) & set(after), "a new worker has served")
                finally:
                    stop.set()
                for caller in callers:
                    caller.result()
            self.assertEqual(WORKERS, len(after))
            self.assertFalse(set(before) & set(after))
            self.assertTrue(set(pids) <= set(before) | set(after))

    def test_nothing_is_left_when_the_block_ends(self) -> None:
        with PhpFpm(self.app, **self.options) as fpm, Nginx(fpm) as web, PhpBuiltin(self.app, **self.options) as builtin:
            servers = (fpm, web, builtin)
            pids = [pid for server in servers for pid in (server.pid, *server.workers())]
            self.assertGreaterEqual(len(pids), 2 * WORKERS + 3)
        for pid in pids:
            wait_until(lambda: not os.path.exists(f"/proc/{pid}"), f"process {pid} is gone")
        self.assertEqual([], [str(server.dir) for server in servers if server.dir.exists()])

    def test_a_server_that_cannot_start_says_why(self) -> None:
        with self.assertRaisesRegex(RuntimeError, "did not start(.|\n)*unknown entry 'no_such_line'"):
            with BrokenFpm(self.app, **self.options):
                pass


class BrokenFpm(PhpFpm):
    def prepare(self) -> None:
        super().prepare()
        with (self.dir / "fpm.conf").open("a") as configuration:
            configuration.write("no_such_line = 1\n")


if __name__ == "__main__":
    unittest.main()
