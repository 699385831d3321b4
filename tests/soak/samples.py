"""What is looked at every few seconds: the processes that serve, and the store.

Memory is of three kinds. *Own* is what a process has allocated (anonymous pages): a leak in a worker shows here. *PSS* counts
shared pages too, each divided among those who map it; *store* is what the store's files take on their file system. Of workers
the mean counts, of file descriptors the process with the most.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KIB = 1024
SECONDS = 30.0
"""What the command line may take at most."""


@dataclass(frozen=True)
class Series:
    """One figure over time: `name` is its key in a sample, `title` what people read."""

    name: str
    title: str
    unit: str = ""
    """`B` for bytes, nothing for a number."""
    floor: float = 2.0
    """Growth below it is none."""


MEMORY_FLOOR = 96.0 * KIB
SERIES = (
    Series("steady_own", "steady workers: own memory", "B", MEMORY_FLOOR),
    Series("steady_pss", "steady workers: PSS", "B", 4 * MEMORY_FLOOR),
    Series("steady_rss", "steady workers: RSS", "B", 4 * MEMORY_FLOOR),
    Series("steady_fds", "steady workers: file descriptors", floor=1.0),
    Series("recycled_own", "recycled workers: own memory", "B", MEMORY_FLOOR),
    Series("recycled_pss", "recycled workers: PSS", "B", 4 * MEMORY_FLOOR),
    Series("recycled_fds", "recycled workers: file descriptors", floor=1.0),
    Series("masters_own", "php-fpm masters: own memory", "B", MEMORY_FLOOR),
    Series("masters_fds", "php-fpm masters: file descriptors"),
    Series("store_allocated", "store: allocated by its files", "B", 256.0 * KIB),
    Series("store_used", "store: bytes in use", "B", 256.0 * KIB),
    Series("readers", "store: reader slots"),
    Series("sessions", "sessions", floor=5.0),
    Series("owners", "owners"),
    Series("pending", "pending requests"),
    Series("in_flight", "requests in flight"),
    Series("queued", "messages queued"),
    Series("broadcasts", "broadcasts nobody took"),
    Series("message_bytes", "bytes of messages", "B", 64.0 * KIB),
    Series("attribute_bytes", "bytes of attributes", "B", 256.0 * KIB),
)
"""What must level off."""

Sample = dict[str, Any]


class StoreProbe:
    """Asks the command line about a store."""

    def __init__(self, command: Path, dsn: str, user: str | None) -> None:
        """`user`: whose store it is, where root asks."""
        self.command = command
        self.dsn = dsn
        self.user = user

    def run(self, *arguments: str) -> str:
        """What the command prints, whatever its exit status when it is JSON; CommandFailed otherwise."""
        chosen = ["--user", self.user] if self.user and self.dsn.startswith("shm:") else []
        done = subprocess.run(
            [str(self.command), "--store", self.dsn, *chosen, *arguments],
            capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=SECONDS, check=False,
        )
        if done.returncode != 0 and not done.stdout.startswith(("{", "[")):
            raise CommandFailed(f"mcp-state {' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def stats(self) -> dict[str, Any]:
        return json.loads(self.run("stats", "--json"))

    def collect(self) -> None:
        """Removes what has expired, and releases dead owners."""
        self.run("gc")

    def contradictions(self) -> list[str]:
        """What in the store disagrees with itself."""
        findings = json.loads(self.run("doctor", "--deep", "--json"))
        contents = [finding for finding in findings if finding["what"] == "contents"]
        if not contents:
            return ["`mcp-state doctor --deep` did not look at the contents"]
        return [finding["seen"] for finding in contents if finding["level"] != "ok"]


class CommandFailed(Exception):
    """The command line could not do it; the text says why."""


def sample(
    started: float, steady: Sequence[int], recycled: Sequence[int], masters: Sequence[int], store: StoreProbe | None
) -> Sample:
    """Looks at the processes with these pids and at the store. A process that ends meanwhile does not count."""
    found: Sample = {"at": time.perf_counter() - started}
    for name, pids in (("steady", steady), ("recycled", recycled), ("masters", masters)):
        seen = [process for process in map(look, pids) if process is not None]
        found[f"{name}_processes"] = len(seen)
        if not seen or name == "masters" and len(seen) < len(pids):
            continue  # in the middle of a reload
        for what in ("own", "pss", "rss"):
            values = [process[what] for process in seen]
            found[f"{name}_{what}"] = sum(values) / len(values) if name != "masters" else sum(values)
        found[f"{name}_fds"] = max(process["fds"] for process in seen)
    if store is not None:
        found |= look_at_store(store)
    return found


def look(pid: int) -> dict[str, int] | None:
    """Memory and file descriptors of a process; None when it has ended."""
    try:
        memory = dict(
            (name, int(rest.split()[0]) * KIB)
            for name, _, rest in (line.partition(":") for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
        )
        fds = len(os.listdir(f"/proc/{pid}/fd"))
    except (OSError, ValueError, IndexError):
        return None
    if "Anonymous" not in memory:
        return None
    return {"own": memory["Anonymous"], "pss": memory["Pss"], "rss": memory["Rss"], "fds": fds}


def look_at_store(store: StoreProbe) -> Sample:
    stats = store.stats()
    found: Sample = {"sessions": stats["sessions"], "store_used": stats["used_bytes"]} | stats["totals"]
    found["late"] = sum(value for name, value in stats["counters"].items() if name.startswith("late_"))
    found["counters"] = stats["counters"]
    place = stats["place"]
    if "readers" in place:
        found["readers"] = int(place["readers"])
    if "generation" in place:
        directory = Path(place["generation"]).parent
        files = [entry for entry in directory.rglob("*") if entry.is_file()]
        found["store_allocated"] = sum(512 * entry.stat().st_blocks for entry in files)
    return found
