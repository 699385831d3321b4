"""The group `wake`: from the call that delivers an answer until the process that waits for it goes on.

`after_ns` and `after_p99_ns` are counted from the return of that call: 0 for a process that goes on before it. Cases: how long it has been waiting by then (`idle-1ms`), on a processor of its own or on the same (`idle-1ms-same`).
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from harness.peers import PEERS, Worker, workers
from harness.results import Repeat, Row, rows

NAMES = ["ours-extension", "ours-write-map", "ours-ffi", "ours-engine", "ours-redis", "poll-100ms", "poll-10ms", "redis-blpop", "eventfd", "futex"]


@dataclass(frozen=True)
class Case:
    name: str
    idle_us: int
    same: bool
    quick: bool = True


CASES = [Case(f"idle-{ms}ms{'-same' if same else ''}", ms * 1000, same) for same in (False, True) for ms in (0, 1, 20)]


def measure(
    cases: list[Case], repeats: int, milliseconds: int, present: Callable[[str], bool], dsn: str | None
) -> Iterator[list[Row]]:
    """The rows of each case. Cases that need two processors are left out where there is one."""
    processors = sorted(os.sched_getaffinity(0))
    names = [name for name in NAMES if present(name)]
    order = random.Random(1)
    with workers([(PEERS[name], "wake", ()) for name in names], dsn) as ready:
        started = dict(zip(names, ready, strict=True))
        for case in cases:
            if not case.same and len(processors) < 2:
                continue
            for worker in started.values():
                pin(worker, processors, case.same)
            repeated: dict[str, list[Repeat]] = {name: [] for name in names}
            for _ in range(repeats):
                for name in order.sample(names, len(names)):
                    report = started[name].run(milliseconds, case.idle_us)[0]
                    (_, p50, p99), (_, after, after_p99) = report["wake"], report["after"]
                    repeated[name].append(Repeat(p50, p99, {"after_ns": after, "after_p99_ns": after_p99}))
            yield rows("wake", case.name, repeated)


def pin(worker: Worker, processors: list[int], same: bool) -> None:
    """Puts the two processes on one processor or on two."""
    waiting, answering = worker.run(1, 0)[0]["pids"]
    os.sched_setaffinity(waiting, {processors[0]})
    os.sched_setaffinity(answering, {processors[0 if same else 1]})
