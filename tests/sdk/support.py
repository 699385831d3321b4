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

from lib.servers import EXTENSION, Nginx, PhpFpm  # noqa: E402

APP = ROOT / "tests/sdk/server/index.php"
WORKERS = 16


@contextlib.contextmanager
def site(
    autoload: Path, sessions: str = "mcp-state", *, workers: int = WORKERS, ini: dict[str, object] | None = None, **env: str
) -> Iterator[tuple[str, PhpFpm]]:
    """The tests' server (server/index.php) on the SDK that $autoload loads: its URL, and php-fpm."""
    environment = {
        "MCP_SDK_AUTOLOAD": str(autoload),
        "MCP_SDK_SESSIONS": sessions,
        "MCP_STATE_BLOBS": "{data}/blobs",
    } | env
    extension = EXTENSION if sessions == "mcp-state" else None
    with PhpFpm(APP, workers=workers, extension=extension, env=environment, ini=ini) as php, Nginx(php) as nginx:
        yield nginx.url + "/mcp", php


def autoloader() -> Path:
    """What MCP_SDK_AUTOLOAD names; ends the program with a clear line where it names nothing."""
    path = os.environ.get("MCP_SDK_AUTOLOAD", "")
    if not path or not Path(path).is_file():
        sys.exit(f"MCP_SDK_AUTOLOAD={path}: no such file; name the vendor/autoload.php of an installation of mcp/sdk")
    return Path(path).resolve()


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
