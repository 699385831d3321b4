"""Rows as text: one table for each group, ratios first."""

from __future__ import annotations

from itertools import groupby

from harness.results import Row

TITLES = {
    "round": "round: a question to the client is sent, taken, answered and claimed",
    "wake": "wake: from the call that delivers until the waiting process goes on",
    "request": "request: through nginx and php-fpm",
    "growth": "growth: what a round costs as something grows",
}
LEGEND = "ratio: the peer's time over that of ours-extension, above 1 where ours is faster; in brackets half of the repeats."


def duration(nanoseconds: float | None) -> str:
    """A time in the unit that suits it."""
    if nanoseconds is None:
        return "-"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= size:
            value = nanoseconds / size
            return f"{value:.{max(0, 2 - len(str(int(value))) + 1)}f} {unit}"
    return f"{nanoseconds:.0f} ns"


def ratio(row: Row) -> str:
    return "-" if row.ratio_to_ours is None else f"{row.ratio_to_ours:.2f}"


def spread(row: Row) -> str:
    return "" if row.ratio_low is None else f"({row.ratio_low:.2f}-{row.ratio_high:.2f})"


def extra(row: Row) -> str:
    """What only some rows have, in words."""
    words = {
        "wrong_in_1000": "of 1,000 rounds {:.0f} wrong",
        "ratio_to_smallest": "{:.2f} x the smallest",
        "bytes_per_session": "{:,.0f} bytes a session",
        "per_second": "{:,.0f} a second",
        "x_one_call": "{:.2f} x one call",
    }
    return ", ".join(text.format(row.more[name]) for name, text in words.items() if row.more.get(name))


def text(rows: list[Row]) -> str:
    """All rows."""
    lines = []
    for group, of_group in groupby(rows, key=lambda row: row.group):
        lines += ["", TITLES[group], f"  {'':<20} {'':<20} {'ratio':>8} {'':<16} {'p50':>10} {'p99':>10}"]
        for case, of_case in groupby(of_group, key=lambda row: row.case):
            for number, row in enumerate(of_case):
                cells = f"{ratio(row):>8} {spread(row):<16} {duration(row.p50_ns):>10} {duration(row.p99_ns):>10}"
                lines.append(f"  {case if number == 0 else '':<20} {row.peer:<20} {cells}  {extra(row)}".rstrip())
    return "\n".join([*lines, "", LEGEND])


def instructions(counts: dict[str, dict[str, int]]) -> str:
    """Instructions of single operations."""
    if not counts:
        return ""
    (ours, bare), operations = counts.values(), next(iter(counts.values()))
    lines = [f"  {name:<20} {ours[name]:>10,} {bare[name]:>10,} {ours[name] / bare[name]:>8.2f}" for name in operations]
    return "\n".join(["", "", f"instructions{'':<8} {'ours-engine':>13} {'bare-lmdb':>10} {'ratio':>8}", *lines, ""])
