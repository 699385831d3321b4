"""What the scenario tests share: the example server under nginx and php-fpm, and ways to disturb it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import unittest
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
for path in ("examples/client", "tests/system"):
    if str(ROOT / path) not in sys.path:
        sys.path.insert(0, str(ROOT / path))

from lib.redis import Redis  # noqa: E402
from lib.servers import EXTENSION, Nginx, PhpFpm  # noqa: E402

APP = ROOT / "tests/scenarios/server/index.php"
WORKERS = 16


@dataclass
class Site:
    """A running server."""

    php: PhpFpm
    nginx: Nginx

    @property
    def url(self) -> str:
        return self.nginx.url + "/mcp"


@contextlib.contextmanager
def site(
    mode: str = "mcp-state",
    *,
    extension: Path | None = EXTENSION,
    ini: dict[str, object] | None = None,
    **env: str,
) -> Iterator[Site]:
    """The tests' server (server/index.php) under nginx and php-fpm, with $env and $ini for PHP."""
    environment = {"MCP_STATE_MODE": mode, "MCP_STATE_BLOBS": "{data}/blobs"} | env
    extension = extension if mode == "mcp-state" else None
    with PhpFpm(APP, workers=WORKERS, extension=extension, env=environment, ini=ini) as php, Nginx(php) as nginx:
        yield Site(php, nginx)


@contextlib.contextmanager
def two_sites(app: Path = APP, options: str = "", **env: str) -> Iterator[Site]:
    """Two pools of different users with everything of their own but Redis; each request goes to the other one."""
    with contextlib.ExitStack() as stack:
        redis = stack.enter_context(Redis())
        environment = {"MCP_STATE_DSN": redis.dsn(options)} | env
        pools = [PhpFpm(app, workers=WORKERS, env=environment, user=user) for user in (None, "nobody")]
        for pool in pools:
            stack.enter_context(pool)
        yield Site(pools[0], stack.enter_context(Nginx(*pools, in_turn=True)))


def for_class(case: type[unittest.TestCase], server: contextlib.AbstractContextManager[Site]) -> Site:
    """Starts a server that lives until the tests of $case are over."""
    stack = contextlib.ExitStack()
    case.addClassCleanup(stack.close)
    return stack.enter_context(server)


@contextlib.contextmanager
def busy_processors(count: int) -> Iterator[None]:
    """Keeps $count processors busy meanwhile."""
    spinners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()
