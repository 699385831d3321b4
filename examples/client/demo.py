#!/usr/bin/env python3
"""Runs one MCP server under parallel calls, once for each way to store its sessions, and compares the results.

    python3 examples/client/demo.py --extension build/mcp_state.so

Exit status: 0 if all results of mcp-state are right, 1 if any is wrong, 2 if the demo cannot run.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

sys.path.insert(0, str(Path(__file__).resolve().parent))

import scenarios
from scenarios import SCENARIOS, Options, Tally

ROOT = Path(__file__).resolve().parents[2]
SERVE = ROOT / "scripts/serve.py"

# The number of runs of each scenario.
RUNS = {
    "A12": 5,
    "A50z": 5,
    "B12": 5,
    "C-AB": 8,
    "C-BA": 8,
    "C-many": 4,
    "D-late": 4,
    "F": 1,
    "parallel-200ms": 4,
}


@dataclass(frozen=True)
class Contender:
    """A way to store the sessions."""

    mode: str
    name: str
    note: str
    script: Path = ROOT / "examples/server/public/index.php"


BLOB = Contender("blob", "JSON blob", "one JSON document for each session, read and written whole: mcp/sdk 0.5 to 0.7")
LOCK = Contender("blob-lock", "blob + lock", "the same, one request of a session at a time: what mcp/sdk 0.9 offers")
OURS = Contender("mcp-state", "mcp-state", "each change of a session one atomic operation with an owner")
SDK = Contender("sdk", "mcp/sdk", "the SDK itself with its own file store", ROOT / "examples/server/sdk/index.php")


class Screen:
    """The output of the demo: colours and a progress line on a terminal, otherwise plain lines."""

    def __init__(self, out: TextIO) -> None:
        self.out = out
        self.moves = out.isatty() and os.environ.get("TERM") != "dumb"
        self.colours = self.moves and "NO_COLOR" not in os.environ

    def paint(self, text: str, colour: int) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self.colours else text

    def line(self, text: str = "") -> None:
        self.out.write(("\r\x1b[K" if self.moves else "") + text + "\n")
        self.out.flush()

    def moving(self, text: str) -> None:
        """Writes a line that the next one replaces, if the output is a terminal."""
        if self.moves:
            self.out.write("\r\x1b[K" + text)
            self.out.flush()


@contextlib.contextmanager
def server(contender: Contender, options: argparse.Namespace) -> Iterator[str]:
    """The example server, with its sessions in a private directory, which is in shared memory if possible."""
    memory = Path("/dev/shm")
    place = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    directory = Path(tempfile.mkdtemp(prefix="mcp-state-demo-", dir=place))
    environment = os.environ | {
        "MCP_STATE_MODE": contender.mode,
        "MCP_STATE_BLOBS": str(directory / "blobs"),
        "MCP_STATE_DSN": f"file://{directory}/store?durability=none",
    }
    command = [sys.executable, str(SERVE), "--port", "0", "--workers", str(options.workers)]
    if contender is OURS:
        command += ["-d", f"extension={options.extension.resolve()}"]
    log = (directory / "server.log").open("w+")
    process = subprocess.Popen([*command, str(contender.script)], stdout=subprocess.PIPE, stderr=log, env=environment, text=True)
    try:
        assert process.stdout is not None
        url = next((word for word in process.stdout.readline().split() if word.startswith("http://")), None)
        if url is None:
            log.seek(0)
            raise RuntimeError(f"the example server did not start:\n{log.read()}")
        yield url
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
        log.close()
        shutil.rmtree(directory, ignore_errors=True)


async def drive(contender: Contender, url: str, screen: Screen, ids: list[str], seed: int) -> dict[str, Tally]:
    """Runs every scenario against one server."""
    chance = random.Random(seed)
    options = Options(url, call_timeout=6.0, ask_timeout=3.0, question_timeout=2.0, random=chance)
    tallies: dict[str, Tally] = {}
    await scenarios.run("A12z", options)  # This run warms up every process and does not count.
    for id in ids:
        tally = tallies[id] = Tally()
        for run in range(RUNS[id]):
            screen.moving(f"  {contender.name:<12} {id:<15} {run + 1} of {RUNS[id]}   {SCENARIOS[id][0]}")
            tally.add(await scenarios.run(id, options))
        right = f"{tally.right:>3} of {tally.total:>3} right"
        screen.line(f"  {contender.name:<12} {id:<15} {screen.paint(right, 32 if tally.is_right else 31)}")
    return tallies


def milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:.0f} ms" if seconds >= 0.0095 else f"{seconds * 1000:.1f} ms"


def wall(tally: Tally) -> str:
    return f"{sum(tally.wall) / len(tally.wall):.2f} s"


def table(results: dict[Contender, dict[str, Tally]], screen: Screen) -> list[str]:
    """Returns the comparison by scenario."""
    row = "  {:<14} {:>11} {:>6} {:>8} {:>10} {:>9} {:>10} {:>9}"
    lines = [screen.paint(row.format("", "right", "lost", "swapped", "timed out", "wall", "wait p50", "p99"), 1)]
    for id in next(iter(results.values())):
        lines += ["", f"{screen.paint(f'{id:<15}', 1)} {SCENARIOS[id][0]}"]
        for contender, tallies in results.items():
            tally = tallies[id]
            right = f"{tally.right} of {tally.total}"
            quantiles = [milliseconds(tally.wait_quantile(q)) for q in (0.5, 0.99)]
            text = row.format(
                contender.name, right, tally.lost + tally.errors, tally.swapped, tally.timed_out, wall(tally), *quantiles
            )
            lines.append(screen.paint(text, 0 if tally.is_right else 31))
    return lines


LEGEND = """
right      the call got its own answer, on its own stream
lost       it got no answer, or an error
swapped    it got another call's answer, alone or beside its own
timed out  it got no answer in time, or the server timed out a question that the user had answered
wall       the average time of one run
wait       the avoidable wait of the right calls: for `echo`, the time beyond its delay; for `ask`, the time from the
           user's answer to the result
"""


def summary(results: dict[Contender, dict[str, Tally]]) -> list[str]:
    lines = []
    for contender, tallies in results.items():
        right, total = (sum(getattr(tally, what) for tally in tallies.values()) for what in ("right", "total"))
        parts = [f"{right} of {total} right"]
        if parallel := tallies.get("parallel-200ms"):
            parts.append(f"8 parallel calls of 200 ms take {wall(parallel)}")
        if wake := tallies.get("F"):
            parts.append(f"an answer wakes its tool in {milliseconds(wake.wait_quantile(0.5))}")
        lines.append(f"  {contender.name:<12} {'; '.join(parts)}")
    return lines


def markdown(results: dict[Contender, dict[str, Tally]]) -> str:
    """Returns the same comparison in Markdown."""
    lines = ["| | " + " | ".join(contender.name for contender in results) + " |", "|---|" + "---|" * len(results)]
    for id in next(iter(results.values())):
        cells = []
        for tallies in results.values():
            tally = tallies[id]
            right = f"{tally.right} of {tally.total}"
            quantiles = "/".join(milliseconds(tally.wait_quantile(q)).removesuffix(" ms") for q in (0.5, 0.99))
            cells.append(f"{right if tally.is_right else f'**{right}**'} · {wall(tally)} · {quantiles} ms")
        lines.append(f"| {id}: {SCENARIOS[id][0]} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", "Right · wall time of one run · wait p50/p99."])


def as_json(results: dict[Contender, dict[str, Tally]]) -> str:
    return json.dumps(
        {
            contender.mode: {id: asdict(tally) | {"total": tally.total} for id, tally in tallies.items()}
            for contender, tallies in results.items()
        },
        indent=1,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="An MCP server under parallel calls: JSON blob, blob under a lock, mcp-state.")
    parser.add_argument("--extension", type=Path, default=ROOT / "build/mcp_state.so", help="the extension to load")
    parser.add_argument("--workers", type=int, default=16, help="PHP processes (16); each waiting stream occupies one")
    parser.add_argument("--only", action="append", choices=list(RUNS), help="run only this scenario (may be repeated)")
    parser.add_argument("--mode", action="append", choices=["blob", "blob-lock", "mcp-state", "sdk"], help="this contender")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random delays")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers to this file")
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown at the end")
    options = parser.parse_args()

    screen = Screen(sys.stdout)
    contenders = [BLOB, LOCK, *([SDK] if os.environ.get("MCP_SDK_AUTOLOAD") else []), OURS]
    contenders = [contender for contender in contenders if not options.mode or contender.mode in options.mode]
    if OURS in contenders and not options.extension.is_file():
        print(f"There is no extension at {options.extension}; `make build` creates it.", file=sys.stderr)
        return 2

    started = time.monotonic()
    screen.line(f"One MCP session, many calls at once: PHP's built-in server with {options.workers} processes.\n")
    for contender in contenders:
        screen.line(f"  {contender.name:<12} {contender.note}")
    screen.line()
    results: dict[Contender, dict[str, Tally]] = {}
    try:
        for contender in contenders:
            with server(contender, options) as url:
                ids = [id for id in RUNS if not options.only or id in options.only]
                results[contender] = asyncio.run(drive(contender, url, screen, ids, options.seed))
    except (RuntimeError, OSError) as error:
        screen.line()
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        screen.line()
        return 2

    screen.line()
    for line in [*table(results, screen), *LEGEND.splitlines(), "", *summary(results)]:
        screen.line(line)
    screen.line(f"\n{time.monotonic() - started:.0f} s")
    if options.json:
        options.json.write_text(as_json(results) + "\n")
    if options.markdown:
        screen.line("\n" + markdown(results))

    ours = results.get(OURS, {})
    wrong = {id: tally for id, tally in ours.items() if not tally.is_right}
    for id, tally in wrong.items():
        print(f"\nmcp-state got {id} wrong:", *tally.remarks, sep="\n  ", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
