"""Writes the generated parts of docs/performance.md, between marks, and its plots."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

from harness import plots, table, targets
from harness.results import Row

PAGE = Path(__file__).resolve().parents[2] / "docs" / "performance.md"
PLOTS = PAGE.parent / "performance"


def write(results: dict, rows: list[Row], counts: dict[str, dict[str, int]]) -> None:
    """Puts a run into the page. What the run did not measure is said to be missing there."""
    parts = {
        "machine": machine(results),
        "targets": must_hold(rows),
        "losses": losses(rows),
        "instructions": instructions(counts),
        **{group: ratios([row for row in rows if row.group == group]) for group in ("round", "wake", "request", "growth")},
    }
    page = PAGE.read_text()
    for name, text in parts.items():
        marks = rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)"
        page, found = re.subn(marks, lambda match: match[1] + text + "\n" + match[2], page, flags=re.S)  # noqa: B023
        if found != 1:
            raise RuntimeError(f"{PAGE.name} has no place for {name}")
    PAGE.write_text(page)
    PLOTS.mkdir(exist_ok=True)
    for name, drawing in plots.all_of(rows).items():
        (PLOTS / f"{name}.svg").write_text(drawing)


def machine(results: dict) -> str:
    lines = [f"* {name}: {value}" for name, value in results["machine"].items()]
    lines += [f"* not measured: {name}, because {reason}" for name, reason in results["skipped"].items()]
    return "\n".join(lines)


def must_hold(rows: list[Row]) -> str:
    lines = ["| what | wanted | measured | |", "|---|---|---|---|"]
    for line in targets.judge(rows):
        lines.append(f"| {line.what} | {line.wanted} | {line.measured} | {'holds' if line.holds else '**does not hold**'} |")
    return "\n".join(lines)


FLOORS = ("bare-lmdb", "bare-write-map", "bare-copy", "eventfd", "futex")


def losses(rows: list[Row]) -> str:
    """Every case in which a peer that is no floor was faster than the extension."""
    lines = []
    for (group, case), of_case in groupby(rows, key=lambda row: (row.group, row.case)):
        faster = [row for row in of_case if (row.ratio_to_ours or 1) < 0.97 and row.peer not in FLOORS and not row.peer.startswith("ours")]
        if faster:
            peers = ", ".join(f"{row.peer} {row.ratio_to_ours:.2f} ×" for row in sorted(faster, key=lambda row: row.ratio_to_ours))
            lines.append(f"* {group} `{case}`: {peers}")
    return "\n".join(lines) or "Nowhere in this run."


def instructions(counts: dict[str, dict[str, int]]) -> str:
    if not counts:
        return "Not counted: valgrind is not installed."
    ours, bare = counts.values()
    lines = ["| operation | ours-engine | bare-lmdb | |", "|---|---:|---:|---:|"]
    lines += [f"| {name} | {ours[name]:,} | {bare[name]:,} | {ours[name] / bare[name]:.2f} × |" for name in ours]
    return "\n".join(lines)


def ratios(rows: list[Row]) -> str:
    """A table of ratios: peers across, cases down; ours with its time, the others with how many times as long they take."""
    lines = []
    # Cases with the same peers make one table.
    by_case = [(case, {row.peer: row for row in of_case}) for case, of_case in groupby(rows, key=lambda row: row.case)]
    for peers, cases in groupby(by_case, key=lambda case: tuple(case[1])):
        lines += ["| | " + " | ".join(peers) + " |", "|---|" + "---:|" * len(peers)]
        for case, found in cases:
            lines.append(f"| `{case}` | " + " | ".join(cell(found[peer]) for peer in peers) + " |")
        lines.append("")
    return "\n".join(lines).rstrip() or "Not measured."


def cell(row: Row) -> str:
    if row.peer == "ours-extension":
        return f"{table.duration(row.p50_ns)}{notes(row)}"
    return f"{row.ratio_to_ours:.2f} ×{notes(row)}" if row.ratio_to_ours >= 0.01 else table.duration(row.p50_ns)


def notes(row: Row) -> str:
    """What only some rows have."""
    more = row.more
    found = []
    if "ratio_to_smallest" in more and more["ratio_to_smallest"] != 1:
        found.append(f"grew {more['ratio_to_smallest']:.2f} ×")
    if "bytes_per_session" in more:
        found.append(f"{more['bytes_per_session']:,.0f} B a session")
    if more.get("wrong_in_1000", 0) >= 0.5:
        found.append(f"{more['wrong_in_1000'] / 10:.1f} % wrong")
    if "per_second" in more:
        found.append(f"{more['per_second']:,.0f}/s")
    if "x_one_call" in more:
        found.append(f"{more['x_one_call']:.2f} × one call")
    return f" ({', '.join(found)})" if found else ""
