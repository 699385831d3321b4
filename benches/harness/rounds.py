"""The groups `round` and `growth`: what operations cost.

`round`: a question to the client is registered and queued, taken, answered, claimed. Cases: the size of message and answer
(`600B`; with one process, 100 sessions and 10 kB of other content in the session), and several processes at once on one
session or each on its own (`procs-8-one`). `600B/send` and so on are the single steps, `…/get` and `…/patch` those on attributes.

`growth`: the same round while one thing grows: other content (`session-1MB`), or sessions stored (`sessions-100000`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from harness.peers import workers
from harness.results import Repeat, Row, rows

STEPS = ("send", "take", "deliver", "claim", "get", "patch")
OURS = ["ours-extension", "ours-ffi", "ours-engine"]
FLOORS = ["bare-lmdb", "bare-copy"]
BLOBS = ["file-blob", "file-blob-flock", "apcu-blob", "apcu-blob-flock", "redis-blob", "redis-blob-flock", "sysv-shm"]
TABLES = ["sqlite", "redis-lua"]


@dataclass(frozen=True)
class Case:
    group: str
    name: str
    peers: list[str]
    processes: int = 1
    spread: str = "one"
    sessions: int = 100
    content: int = 10_000
    message: int = 600


EVERYBODY = [*OURS, *BLOBS, *TABLES, *FLOORS]
ROUND = [
    *(Case("round", name, EVERYBODY, message=size) for name, size in (("600B", 600), ("4kB", 4000), ("100kB", 100_000))),
    *(Case("round", f"procs-{n}-{spread}", EVERYBODY, n, spread) for n in (2, 8) for spread in ("one", "many")),
]
GROWING = [*OURS, "file-blob", *TABLES, "bare-lmdb"]
SIZES = (("1kB", 1000), ("10kB", 10_000), ("100kB", 100_000), ("1MB", 1_000_000))
GROWTH = [
    *(Case("growth", f"session-{name}", [*OURS, *BLOBS, *TABLES, "bare-lmdb"], content=size) for name, size in SIZES),
    *(Case("growth", f"sessions-{n}", GROWING, sessions=n, content=1000) for n in (100, 10_000, 100_000)),
]


def measure(
    cases: list[Case], repeats: int, milliseconds: int, present: Callable[[str], bool], dsn: str | None
) -> Iterator[list[Row]]:
    """The rows of each case."""
    order = random.Random(1)
    for case in cases:
        names = [name for name in case.peers if present(name)]
        steps: dict[str, dict[str, list[Repeat]]] = {}
        sizes = (case.processes, case.spread, case.sessions, case.content, case.message)
        # Many processes share few processors: a slice must be longer than the scheduler's.
        slice_ms = milliseconds * (case.processes + 1) // 2
        with workers(names, dsn, "round", *sizes) as started:
            for worker in started.values():
                worker.run(milliseconds // 2)  # It warms up.
            for _ in range(repeats):
                for name in order.sample(names, len(names)):
                    reports = started[name].run(slice_ms)
                    for step, repeat in by_step(reports).items():
                        steps.setdefault(step, {}).setdefault(name, []).append(repeat)
        made = []
        for step in ("round", *STEPS) if case.processes == 1 and case.group == "round" else ("round",):
            in_order = {name: steps[step][name] for name in names}
            made += rows(case.group, case.name if step == "round" else f"{case.name}/{step}", in_order)
        yield made


def by_step(reports: list[dict]) -> dict[str, Repeat]:
    """What a slice came to. With several processes the time of a round is that of all rounds of all of them: the wall's."""
    if len(reports) == 1:
        steps = {step: Repeat(p50, p99) for step, (_, p50, p99) in reports[0]["steps"].items()}
    else:
        made = sum(report["rounds"] for report in reports)
        wall = max(report["ns"] for report in reports)
        steps = {"round": Repeat(wall / made, max(report["steps"]["round"][2] for report in reports))}
    made = sum(report["rounds"] for report in reports)
    steps["round"].more["wrong_in_1000"] = 1000 * sum(report["wrong"] for report in reports) / made
    return steps
