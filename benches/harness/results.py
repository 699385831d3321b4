"""Rows of results, and how a row comes from repeats.

Peers are measured in turn, slice by slice, again and again: a moment in which the machine is busy hits all of them alike. So a
ratio is taken within each repeat, and the median of these is the result; that of the times would mix calm repeats of one
peer with busy ones of another.
"""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass, field

OURS = "ours-extension"


@dataclass
class Row:
    """One case of one peer. `ratio_to_ours` is above 1 where the extension is faster."""

    group: str
    case: str
    peer: str
    p50_ns: float | None = None
    p99_ns: float | None = None
    ratio_to_ours: float | None = None
    ratio_low: float | None = None  # a quarter of the repeats is below
    ratio_high: float | None = None  # a quarter is above
    repeats: int = 0
    more: dict[str, float] = field(default_factory=dict)  # what only some cases have

    def as_json(self) -> dict[str, object]:
        row = asdict(self)
        row |= row.pop("more")
        return {name: value for name, value in row.items() if value is not None}

    @classmethod
    def from_json(cls, row: dict[str, object]) -> Row:
        known = cls.__dataclass_fields__.keys()
        own = {name: value for name, value in row.items() if name in known}
        return cls(**own, more={name: value for name, value in row.items() if name not in known})


@dataclass
class Repeat:
    """What one slice of one peer came to."""

    p50_ns: float
    p99_ns: float
    more: dict[str, float] = field(default_factory=dict)


def quartiles(values: list[float]) -> tuple[float, float, float]:
    if len(values) < 2:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def rows(group: str, case: str, repeats: dict[str, list[Repeat]], ours: str = OURS) -> list[Row]:
    """A row for each peer from its repeats; all peers have as many, in the same order."""
    made = []
    for peer, own in repeats.items():
        row = Row(group, case, peer, repeats=len(own))
        row.p50_ns = statistics.median(repeat.p50_ns for repeat in own)
        row.p99_ns = statistics.median(repeat.p99_ns for repeat in own)
        for name in own[0].more:
            row.more[name] = statistics.median(repeat.more[name] for repeat in own)
        if ours in repeats:
            ratios = [theirs.p50_ns / reference.p50_ns for theirs, reference in zip(own, repeats[ours], strict=True)]
            row.ratio_low, row.ratio_to_ours, row.ratio_high = quartiles(ratios)
        made.append(row)
    return made
