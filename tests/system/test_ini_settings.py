"""Ini settings under php-fpm: the extension reads them anew only when PHP says that one has changed, and yet each request goes by
its own, in a process that serves one after another."""

from __future__ import annotations

import json
import socket
import struct
import tempfile
import unittest
from pathlib import Path

from lib.servers import DEADLINE, PhpFpm

# What the store of this request goes by, and what came of setting it from PHP code.
APP = """<?php
$engine = McpState\\Native\\Engine::open();
$limits = $engine->stats()['limits'];
echo json_encode([
    'pid' => getmypid(), 'store' => basename($engine->dsn()),
    'max_owners' => $limits['max_owners'], 'max_topics' => $limits['max_topics'],
    'set' => [ini_set('mcp_state.max_owners', '9'), ini_set('mcp_state.dsn', 'memory://')],
]);
"""


def ask(php: PhpFpm, **parameters: str) -> dict:
    """The answer to one request, with FastCGI parameters that nginx sets from its configuration."""
    BEGIN, PARAMETERS, INPUT, OUTPUT = 1, 4, 5, 6
    place = {"SCRIPT_FILENAME": str(php.app), "DOCUMENT_ROOT": str(php.app.parent)}
    named = {"REQUEST_METHOD": "GET", "SERVER_NAME": "elsewhere.example"} | place | parameters
    pairs = ((name.encode(), value.encode()) for name, value in named.items())
    encoded = b"".join(struct.pack("!II", len(name) | 1 << 31, len(value) | 1 << 31) + name + value for name, value in pairs)

    def record(kind: int, content: bytes) -> bytes:
        return struct.pack("!BBHHBx", 1, kind, 1, len(content), 0) + content

    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(DEADLINE)
        connection.connect(php.address)
        begin = record(BEGIN, struct.pack("!HB5x", 1, 0))
        connection.sendall(begin + record(PARAMETERS, encoded) + record(PARAMETERS, b"") + record(INPUT, b""))
        output = b""
        with connection.makefile("rb") as answer:
            while header := answer.read(8):
                _, kind, _, length, padding = struct.unpack("!BBHHBx", header)
                content = answer.read(length + padding)[:length]
                output += content if kind == OUTPUT else b""
    return json.loads(output.partition(b"\r\n\r\n")[2])


class PoolWithSettings(PhpFpm):
    """One process, with sections of php.ini and lines of the pool's configuration besides."""

    def __init__(self, app: Path, sections: str = "", pool: str = "") -> None:
        self.sections, self.pool = sections, pool
        # PHP counts the age of what it remembers of .user.ini in whole seconds: 0 would be up to one.
        ini = {"mcp_state.dsn": "file://{data}/php-ini?durability=none", "user_ini.cache_ttl": -1}
        super().__init__(app, workers=1, ini=ini)

    def prepare(self) -> None:
        super().prepare()
        (self.dir / "php.ini").write_text(self.sections)
        with (self.dir / "fpm.conf").open("a") as configuration:
            configuration.write(self.pool)


class IniSettings(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory(prefix="mcp-state-app-")
        self.addCleanup(directory.cleanup)
        self.app = Path(directory.name) / "index.php"
        self.app.write_text(APP)

    def limits(self, answers: list[dict]) -> list[int]:
        self.assertEqual(1, len({answer["pid"] for answer in answers}), "one process has served all")
        return [answer["max_owners"] for answer in answers]

    def test_a_section_of_php_ini_holds_for_the_requests_of_its_host_and_for_no_other(self) -> None:
        sections = "[HOST=two.example]\nmcp_state.max_owners = 2\n[HOST=three.example]\nmcp_state.max_owners = 3\n"
        hosts = ["elsewhere", "two", "two", "elsewhere", "three", "two", "elsewhere"]
        with PoolWithSettings(self.app, sections) as php:
            answers = [ask(php, SERVER_NAME=f"{host}.example") for host in hosts]
        self.assertEqual([256, 2, 2, 256, 3, 2, 256], self.limits(answers))

    def test_a_value_that_the_web_server_passes_is_taken_up_by_its_request(self) -> None:
        for kind in ("PHP_VALUE", "PHP_ADMIN_VALUE"):
            with PoolWithSettings(self.app) as php:
                answers = [ask(php), *(ask(php, **{kind: f"mcp_state.max_owners = {limit}"}) for limit in (5, 6, 256, 5))]
            self.assertEqual([256, 5, 6, 256, 5], self.limits(answers))

    def test_a_pool_has_its_own_values_and_a_reload_changes_them(self) -> None:
        lines = "php_admin_value[mcp_state.max_owners] = {}\nphp_value[mcp_state.max_topics] = {}\n"
        with PoolWithSettings(self.app, pool=lines.format(11, 12)) as php:
            configuration = php.dir / "fpm.conf"
            before = [ask(php), ask(php)]
            configuration.write_text(configuration.read_text().replace(lines.format(11, 12), lines.format(13, 14)))
            php.reload()
            after = [ask(php), ask(php)]
        self.assertEqual([(11, 12)] * 2, [(answer["max_owners"], answer["max_topics"]) for answer in before])
        self.assertEqual([(13, 14)] * 2, [(answer["max_owners"], answer["max_topics"]) for answer in after])

    def test_a_user_ini_names_the_store_from_the_next_request_on_and_sets_no_limit(self) -> None:
        with PoolWithSettings(self.app) as php:
            user_ini = php.app.parent / ".user.ini"
            answers = [ask(php)]
            for name in ("first", "second"):
                user_ini.write_text(f'mcp_state.dsn = "file://{php.data}/{name}?durability=none"\nmcp_state.max_owners = 7\n')
                user_ini.chmod(0o644)
                answers += [ask(php), ask(php)]
            user_ini.unlink()
            answers.append(ask(php))
        stores = [answer["store"].partition("?")[0] for answer in answers]
        self.assertEqual(["php-ini", "first", "first", "second", "second", "php-ini"], stores)
        self.assertEqual([256] * 6, self.limits(answers))

    def test_php_code_sets_none_of_them_neither_for_its_request_nor_for_the_next(self) -> None:
        with PoolWithSettings(self.app) as php:
            answers = [ask(php) for _ in range(3)]
        self.assertEqual([[False, False]] * 3, [answer["set"] for answer in answers])
        self.assertEqual([256] * 3, self.limits(answers))


if __name__ == "__main__":
    unittest.main()
