"""The groups `round` and `growth`: what operations cost.

`round`: a question to the client is registered and queued, taken, answered, claimed. Cases: the size of message and answer
(`600B`; with one process, 100 sessions and 10 kB of other content in the session), and several processes at once on one
session or each on its own (`procs-8-one`). `600B/send` and so on are the single steps, `…/get` and `…/patch` those on attributes.

`growth`: the same round while one thing grows: other content (`session-1MB`), sessions stored (`sessions-100000`), requests of
another owner that stay pending (`pending-250`). All sizes of a series are measured in turn, as peers are, so that
`ratio_to_smallest` compares like with like. `bytes_per_session` is what the sessions take of memory or disk.
"""

from __future__ import annotations

import random
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from harness.peers import PEERS, allocated, workers
from harness.results import Repeat, Row, rows

STEPS = ("send", "take", "deliver", "claim", "get", "patch")
OURS = ["ours-extension", "ours-write-map", "ours-ffi", "ours-engine", "ours-redis"]
FLOORS = ["bare-lmdb", "bare-write-map", "bare-copy"]
BLOBS = ["file-blob", "file-blob-flock", "apcu-blob", "apcu-blob-flock", "redis-blob", "redis-blob-flock", "sysv-shm"]
TABLES = ["sqlite", "redis-lua"]
EVERYBODY = [*OURS, *BLOBS, *TABLES, *FLOORS]
GROWING = ["ours-extension", "ours-engine", "ours-redis", "file-blob", *TABLES, "bare-lmdb"]


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
    pending: int = 0
    quick: bool = True  # whether a short run has it

    def arguments(self) -> tuple[object, ...]:
        return self.processes, self.spread, self.sessions, self.content, self.message, self.pending


# Cases that are measured in turn, the smallest first.
Series = list[Case]
ROUND: list[Series] = [
    *([Case("round", name, EVERYBODY, message=size)] for name, size in (("600B", 600), ("4kB", 4000), ("100kB", 100_000))),
    *([Case("round", f"procs-{n}-{spread}", EVERYBODY, n, spread, quick=n == 8)] for n in (2, 8) for spread in ("one", "many")),
]
SIZES = (("1kB", 1000), ("10kB", 10_000), ("100kB", 100_000), ("1MB", 1_000_000))
GROWTH: list[Series] = [
    [
        Case("growth", f"session-{name}", [*GROWING, "apcu-blob"], content=size, quick=size in (1000, 1_000_000))
        for name, size in SIZES
    ],
    [Case("growth", f"sessions-{n}", GROWING, sessions=n, content=1000, quick=n < 100_000) for n in (100, 10_000, 100_000)],
    [Case("growth", f"pending-{n}", GROWING, pending=n) for n in (0, 25, 250)],
]


def measure(
    cases: Series, repeats: int, milliseconds: int, present: Callable[[str], bool], dsn: str | None
) -> Iterator[list[Row]]:
    """The rows of a series, all at once."""
    wanted = [(case, name) for case in cases for name in case.peers if present(name)]
    commands = [(PEERS[name], "round", case.arguments()) for case, name in wanted]
    order = random.Random(1)
    with workers(commands, dsn) as started:
        turns = list(zip(wanted, started, strict=True))
        sizes = {(case.name, name): allocated(PEERS[name], worker) for (case, name), worker in turns}
        for _, worker in turns:
            worker.run(milliseconds // 2)  # It warms up.
        repeated: dict[str, dict[str, dict[str, list[Repeat]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
        for _ in range(repeats):
            for (case, name), worker in order.sample(turns, len(turns)):
                # Many processes share few processors: a slice must be longer than the scheduler's.
                reports = worker.run(milliseconds * (case.processes + 1) // 2)
                for step, repeat in by_step(reports).items():
                    repeated[case.name][step][name].append(repeat)
    made = []
    for case in cases:
        names = [name for name in case.peers if present(name)]
        for step in ("round", *STEPS) if case.processes == 1 and case.group == "round" else ("round",):
            in_order = {name: repeated[case.name][step][name] for name in names}
            made += rows(case.group, case.name if step == "round" else f"{case.name}/{step}", in_order)
    if len(cases) > 1:
        add_growth(made, cases, repeated, sizes)
    yield made


def add_growth(made: list[Row], cases: Series, repeated, sizes: dict[tuple[str, str], int | None]) -> None:
    """What only the rows of a growing series have."""
    by_name = {case.name: case for case in cases}
    for row in made:
        own, smallest = repeated[row.case]["round"][row.peer], repeated[cases[0].name]["round"][row.peer]
        ratios = [mine.p50_ns / small.p50_ns for mine, small in zip(own, smallest, strict=True)]
        row.more["ratio_to_smallest"] = statistics.median(ratios)
        size = sizes[row.case, row.peer]
        if size is not None and by_name[row.case].sessions > 1000:
            row.more["bytes_per_session"] = size / by_name[row.case].sessions


def by_step(reports: list[dict]) -> dict[str, Repeat]:
    """What a slice came to. With several processes the time of a round is that of all rounds of all of them: the wall's."""
    made = sum(report["rounds"] for report in reports)
    if len(reports) == 1:
        steps = {step: Repeat(p50, p99) for step, (_, p50, p99) in reports[0]["steps"].items()}
    else:
        wall = max(report["ns"] for report in reports)
        steps = {"round": Repeat(wall / made, max(report["steps"]["round"][2] for report in reports))}
    steps["round"].more["wrong_in_1000"] = 1000 * sum(report["wrong"] for report in reports) / made
    return steps
