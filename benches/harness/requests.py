"""The group `request`: whole requests through nginx and php-fpm.

`calls-4`: plain calls on four connections at once, each on a session of its own; as with `procs-…`, the time is the wall's for each
call (with `calls-1`, the call's). `parallel-8x200ms`: eight calls of 200 ms at once on one session; `x_one_call` compares with one alone. `elicit`: a call that
asks the client, which answers at once; `answer-to-result` is the part from the answer's POST to the tool's result.

All peers serve the same example server (benches/server), but for `sdk-…`: these are the real mcp/sdk, unmodified, with its own file
store and with our session manager, where MCP_SDK_AUTOLOAD names an installation.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from harness.peers import BUILD, NATIVE, ROOT, Worker, directory
from harness.results import Repeat, Row, rows

sys.path.insert(0, str(ROOT / "tests/system"))
from lib.servers import Nginx, PhpFpm  # noqa: E402

WORKERS = 16
DELAY_MS = 200
EXAMPLE, SDK = ROOT / "benches/server/index.php", ROOT / "tests/sdk/server/index.php"
# What MCP_STATE_MODE or MCP_SDK_SESSIONS makes of it.
MODES = {"ours-extension": "mcp-state", "plain-php": "plain", "file-blob": "blob", "file-blob-flock": "blob-lock"}
SDK_MODES = {"ours-extension": "mcp-state", "file-blob": "file"}
CALLS = {f"calls-{n}": f"calls {n}" for n in (1, 4, 16)}
CASES = CALLS | {f"parallel-8x{DELAY_MS}ms": f"parallel 8 {DELAY_MS}", "elicit": "elicit"}


def skipped() -> dict[str, str]:
    """What this machine cannot measure, and why."""
    reasons = {}
    for name, program in (("nginx", os.environ.get("NGINX")), ("php-fpm", os.environ.get("PHP_FPM"))):
        if not program or not shutil.which(program):
            reasons["request"] = f"{name} is not installed"
    if not os.environ.get("MCP_SDK_AUTOLOAD"):
        reasons["request sdk"] = "MCP_SDK_AUTOLOAD names no installation of mcp/sdk"
    return reasons


def measure(repeats: int, milliseconds: int, prefix: str, dsn: str | None) -> Iterator[list[Row]]:
    """The rows, first on the example server, then on the SDK."""
    missing = skipped()
    if "request" not in missing:
        yield from on_servers(EXAMPLE, MODES, "", repeats, milliseconds, prefix, dsn)
        if "request sdk" not in missing:
            yield from on_servers(SDK, SDK_MODES, "sdk-", repeats, milliseconds, prefix, dsn)


def on_servers(
    app: Path, modes: dict[str, str], before: str, repeats: int, milliseconds: int, prefix: str, dsn: str | None
) -> Iterator[list[Row]]:
    cases = {before + name: words for name, words in CASES.items() if (before + name).startswith(prefix)}
    order = random.Random(1)
    with contextlib.ExitStack() as stack:
        clients = {name: stack.enter_context(client(app, mode, dsn)) for name, mode in modes.items()} if cases else {}
        for name, worker in clients.items():
            if (line := worker.line()) != "ready":
                raise RuntimeError(f"the client of {name} said {line!r}")
            worker.run(milliseconds, "calls", WORKERS)  # Every process warms up.
        for case, words in cases.items():
            repeated: dict[str, dict[str, list[Repeat]]] = defaultdict(lambda: defaultdict(list))
            for _ in range(repeats):
                for name in order.sample(list(clients), len(clients)):
                    for part, repeat in parts(case, clients[name].run(milliseconds, words)[0]):
                        repeated[part][name].append(repeat)
            for part, of_part in repeated.items():
                yield rows("request", part, {name: of_part[name] for name in clients})


def parts(case: str, report: dict) -> Iterator[tuple[str, Repeat]]:
    """What a slice came to: one case, or two."""
    made, p50, p99 = report["time"]
    more = {"wrong_in_1000": 1000 * report["wrong"] / report.get("calls", made)}
    if "calls-" in case:
        # Alone, a call's own time says more: it is not that of the slowest few.
        time = p50 if case.endswith("calls-1") else report["ns"] / made
        yield case, Repeat(time, p99, more | {"per_second": 1e9 * made / report["ns"]})
    elif "one" in report:
        yield case, Repeat(p50, p99, more | {"x_one_call": p50 / report["one"][1]})
    else:
        yield case, Repeat(p50, p99, more | {"per_second": 1e9 * made / report["ns"]})
        _, p50, p99 = report["answered"]
        yield case.replace("elicit", "answer-to-result"), Repeat(p50, p99)


@contextlib.contextmanager
def client(app: Path, mode: str, dsn: str | None) -> Iterator[Worker]:
    """A client of a server of its own, whose sessions are in memory as those of all peers."""
    with directory() as kept, contextlib.ExitStack() as stack:
        environment = {
            "MCP_STATE_MODE": mode,
            "MCP_SDK_SESSIONS": mode,
            "MCP_STATE_BLOBS": str(kept / "blobs"),
            "MCP_STATE_DSN": (dsn or "file://{directory}/store?durability=none").replace("{directory}", str(kept)),
        }
        if autoload := os.environ.get("MCP_SDK_AUTOLOAD"):
            environment["MCP_SDK_AUTOLOAD"] = autoload
        extension = BUILD / "mcp_state.so" if mode == "mcp-state" else None
        server = PhpFpm(app, workers=WORKERS, extension=extension, env=environment)
        if server.user:
            shutil.chown(kept, server.user)
        php = stack.enter_context(server)
        nginx = stack.enter_context(Nginx(php))
        address = nginx.url.removeprefix("http://")
        yield stack.enter_context(Worker([str(NATIVE), "request", address, "/mcp"], str(kept)))
