"""The SDK under nginx and php-fpm: which installation, and the servers that run it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
for path in ("examples/client", "tests/system"):
    if str(ROOT / path) not in sys.path:
        sys.path.insert(0, str(ROOT / path))

from lib.servers import EXTENSION, SETUP, Nginx, PhpFpm  # noqa: E402

SERVER = ROOT / "tests/sdk/server/index.php"
DOUBLE = ROOT / "tests/sdk/double/index.php"
WORKERS = 16


@contextlib.contextmanager
def site(
    autoload: Path, sessions: str = "mcp-state", *, ini: dict[str, object] | None = None, **env: str
) -> Iterator[tuple[str, PhpFpm]]:
    """The tests' server (server/index.php) on the SDK that $autoload loads: its URL, and php-fpm."""
    with _served(SERVER, sessions, ini, {"MCP_SDK_AUTOLOAD": str(autoload)} | env) as served:
        yield served


@contextlib.contextmanager
def double(
    generation: str, sessions: str = "mcp-state", *, ini: dict[str, object] | None = None, **env: str
) -> Iterator[tuple[str, PhpFpm]]:
    """The same on the double of the SDK (double/index.php) of a generation, "08" or "09"."""
    with _served(DOUBLE, sessions, ini, {"MCP_DOUBLE_GENERATION": generation} | env) as served:
        yield served


@contextlib.contextmanager
def _served(app: Path, sessions: str, ini: dict[str, object] | None, env: dict[str, str]) -> Iterator[tuple[str, PhpFpm]]:
    environment = {"MCP_SDK_SESSIONS": sessions, "MCP_STATE_BLOBS": "{data}/blobs"} | env
    extension = EXTENSION if sessions == "mcp-state" else None
    with PhpFpm(app, workers=WORKERS, extension=extension, env=environment, ini=ini) as php, Nginx(php) as nginx:
        yield nginx.url + "/mcp", php


def autoloader() -> Path | None:
    """The autoloader of an installation of mcp/sdk; None where there is none."""
    named = os.environ.get("MCP_SDK_AUTOLOAD")
    if named:
        if not Path(named).is_file():
            sys.exit(f"MCP_SDK_AUTOLOAD={named}: no such file; name the vendor/autoload.php of an installation of mcp/sdk")
        return Path(named).resolve()
    installed = ROOT / "php/vendor"
    return installed / "autoload.php" if (installed / "mcp/sdk").is_dir() else None


AUTOLOAD = autoloader()


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
