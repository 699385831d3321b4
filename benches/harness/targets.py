"""What must hold, judged by the rows of a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.results import OURS, Row

STEPS = ("send", "take", "deliver", "claim", "get", "patch")


@dataclass
class Line:
    what: str
    wanted: str
    measured: str
    holds: bool


def judge(rows: list[Row]) -> list[Line]:
    """A line for each target that the run has measured."""
    return list(_lines({(row.group, row.case, row.peer): row for row in rows}))


def _lines(found: dict[tuple[str, str, str], Row]) -> Iterator[Line]:
    for ours, setting in ((OURS, ""), ("ours-write-map", ", write_map=1")):
        base = found.get(("round", "600B", ours))
        for peer, wanted in (("file-blob", 10), ("sqlite", 4), ("redis-lua", 3)):
            if base and (row := found.get(("round", "600B", peer))):
                ratio = row.ratio_to_ours / base.ratio_to_ours
                yield Line(f"a round from PHP against {peer}{setting}", f"≥ {wanted} ×", f"{ratio:.2f} ×", ratio >= wanted)
    for step in STEPS:
        bare = found.get(("round", f"600B/{step}", "bare-lmdb"))
        for peer in (OURS, "ours-engine"):
            ours = found.get(("round", f"600B/{step}", peer))
            if bare and ours:
                ratio = ours.ratio_to_ours / bare.ratio_to_ours
                yield Line(f"{step}, {peer}, against the bare transaction", "≤ 1.5 ×", f"{ratio:.2f} ×", ratio <= 1.5)
    for case in ("idle-0ms", "idle-1ms", "idle-20ms"):
        if row := found.get(("wake", case, OURS)):
            since = {
                "the delivery is done": (row.more["after_ns"], row.more.get("after_p99_ns", row.p99_ns)),
                "it begins": (row.p50_ns, row.p99_ns),
            }
            for start, (p50, p99) in since.items():
                measured, holds = f"{p50 / 1e3:.0f} µs, {p99 / 1e6:.2f} ms", p50 <= 200e3 and p99 <= 5e6
                yield Line(f"wake-up, {case}, since {start}", "p50 ≤ 200 µs, p99 ≤ 5 ms", measured, holds)
    plain = found.get(("request", "calls-1", OURS))
    for connections in (1, 4, 16):
        case = f"calls-{connections}"
        others = [row for key, row in found.items() if key[:2] == ("request", case) and row.peer != OURS]
        if others:
            best = min(others, key=lambda row: row.ratio_to_ours)
            measured = f"{best.ratio_to_ours:.2f} × {best.peer}"
            yield Line(f"plain calls, {connections} at once, against the best peer", "≥ 0.97 ×", measured, best.ratio_to_ours >= 0.97)
    if (row := found.get(("request", "answer-to-result", OURS))) and plain:
        ratio, p99 = row.p50_ns / plain.p50_ns, row.p99_ns / 1e6
        measured, holds = f"{ratio:.2f} ×, {p99:.1f} ms", ratio <= 1.3 and p99 <= 10
        yield Line("an answer's POST to the tool's result", "p50 ≤ 1.3 × a plain call, p99 ≤ 10 ms", measured, holds)
    for key, row in found.items():
        if key[0] == "request" and key[1].startswith("parallel") and row.peer == OURS:
            ratio = row.more["x_one_call"]
            yield Line("8 calls of 200 ms at once on one session", "≤ 1.3 × one", f"{ratio:.2f} ×", ratio <= 1.3)
    for case, what in (("sessions-100000", "100,000 sessions against 100"), ("session-1MB", "a session of 1 MB against 1 kB")):
        if row := found.get(("growth", case, OURS)):
            ratio = row.more["ratio_to_smallest"]
            yield Line(f"a round with {what}", "≤ 1.3 ×", f"{ratio:.2f} ×", ratio <= 1.3)
    if row := found.get(("growth", "expired-10-of-10000", OURS)):
        ratio = row.more["ratio_to_smallest"]
        yield Line("collecting 10 expired of 10,000 sessions against 10 of 1,000", "≤ 1.3 ×", f"{ratio:.2f} ×", ratio <= 1.3)


def text(lines: list[Line]) -> str:
    """For a terminal."""
    return "\n".join(
        f"  {'holds' if line.holds else 'FAILS':<6} {line.what:<62} {line.wanted:<38} {line.measured}" for line in lines
    )
