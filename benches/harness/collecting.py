"""Of the group `growth`: what it costs to collect expired sessions.

Cases: `expired-10-of-1000` collects 10 expired sessions of a store that holds 1,000 others. Where the cost follows what is
collected, it stays when only the others grow. The first case is the smallest of `ratio_to_smallest`.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator

from harness.peers import PEERS, workers
from harness.results import Repeat, Row, rows

NAMES = ["ours-extension", "file-blob"]
STORED = (1000, 10_000)
EXPIRED = (10, 100)


def measure(repeats: int, present: Callable[[str], bool], dsn: str | None) -> Iterator[list[Row]]:
    """The rows, all at once."""
    names = [name for name in NAMES if present(name)]
    wanted = [(name, stored) for stored in STORED for name in names]
    repeated: dict[str, dict[str, list[Repeat]]] = {f"expired-{k}-of-{n}": {name: [] for name in names} for n in STORED for k in EXPIRED}
    with workers([(PEERS[name], "collect", (stored,)) for name, stored in wanted], dsn) as started:
        for _ in range(repeats):
            for expired in EXPIRED:
                for (name, stored), worker in zip(wanted, started, strict=True):
                    time = worker.run(expired)[0]["ns"]
                    repeated[f"expired-{expired}-of-{stored}"][name].append(Repeat(time, time))
    made = []
    for case, of_case in repeated.items():
        for row in rows("growth", case, of_case):
            smallest = repeated[f"expired-{EXPIRED[0]}-of-{STORED[0]}"][row.peer]
            ratios = [own.p50_ns / small.p50_ns for own, small in zip(of_case[row.peer], smallest, strict=True)]
            row.more["ratio_to_smallest"] = statistics.median(ratios)
            made.append(row)
    yield made
