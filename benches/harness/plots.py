"""Plots as SVG, without any library: bars and lines on logarithmic axes, since peers differ by orders of magnitude."""

from __future__ import annotations

import math
from html import escape

from harness.results import Row
from harness.table import duration

WIDTH, LEFT, ROW = 760, 170, 24
INK, GRID, OURS, PEER = "#333", "#ddd", "#1a7f5a", "#8fa3b0"
COLOURS = ("#1a7f5a", "#5b9bd5", "#c0504d", "#e0a030", "#7d5ba6", "#555", "#b0785a", "#3aa6a6")


def svg(height: int, parts: list[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">'
    return "\n".join([head, f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>', *parts, "</svg>", ""])


def word(x: float, y: float, what: str, anchor: str = "start", size: int = 12, colour: str = INK) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}">{escape(what)}</text>'


def line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}" stroke="{GRID}"/>'


def mark(exponent: int) -> str:
    """A power of ten of nanoseconds."""
    unit = min(max(exponent, 0) // 3, 3)
    return f"{10 ** (exponent - 3 * unit):g} {('ns', 'µs', 'ms', 's')[unit]}"


def decades(low: float, high: float) -> range:
    return range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)


def bars(title: str, rows: list[Row]) -> str:
    """The medians of peers, shortest first; a thin line reaches to the 99th percentile."""
    rows = sorted(rows, key=lambda row: row.p50_ns)
    exponents = decades(min(row.p50_ns for row in rows) / 1.5, max(max(row.p50_ns, row.p99_ns) for row in rows))
    right = WIDTH - 90

    def x(value: float) -> float:
        share = (math.log10(value) - exponents[0]) / (exponents[-1] - exponents[0])
        return LEFT + max(0.0, min(1.0, share)) * (right - LEFT)

    height = 60 + ROW * len(rows)
    parts = [word(10, 20, title, size=14)]
    for exponent in exponents:
        parts += [line(x(10**exponent), 30, x(10**exponent), height - 25)]
        parts += [word(x(10**exponent), height - 10, mark(exponent), "middle", 11)]
    for number, row in enumerate(rows):
        y = 36 + ROW * number
        colour = OURS if row.peer.startswith("ours") else PEER
        parts.append(word(LEFT - 8, y + 13, row.peer, "end"))
        parts.append(f'<rect x="{LEFT}" y="{y}" width="{x(row.p50_ns) - LEFT:.1f}" height="16" fill="{colour}"/>')
        parts.append(f'<rect x="{LEFT}" y="{y + 7}" width="{x(row.p99_ns) - LEFT:.1f}" height="2" fill="{colour}"/>')
        parts.append(word(max(x(row.p50_ns), x(row.p99_ns)) + 6, y + 13, duration(row.p50_ns), size=11))
    return svg(height, parts)


def lines(title: str, cases: list[str], rows: list[Row]) -> str:
    """The medians of peers from case to case."""
    height, top, bottom, right = 340, 40, 300, WIDTH - 150
    peers = list(dict.fromkeys(row.peer for row in rows))
    exponents = decades(min(row.p50_ns for row in rows), max(row.p50_ns for row in rows))

    def y(value: float) -> float:
        return bottom - (math.log10(value) - exponents[0]) / (exponents[-1] - exponents[0]) * (bottom - top)

    def x(case: str) -> float:
        return 80 + (right - 90) * cases.index(case) / (len(cases) - 1)

    parts = [word(10, 20, title, size=14)]
    for exponent in exponents:
        parts += [line(70, y(10**exponent), right, y(10**exponent))]
        parts += [word(64, y(10**exponent) + 4, mark(exponent), "end", 11)]
    parts += [word(x(case), bottom + 20, case, "middle", 11) for case in cases]
    labels: list[float] = []
    ends = {row.peer: y(row.p50_ns) for row in rows if row.case == cases[-1]}
    for peer in sorted(peers, key=lambda peer: ends[peer]):
        colour = COLOURS[peers.index(peer) % len(COLOURS)]
        points = " ".join(f"{x(row.case):.0f},{y(row.p50_ns):.1f}" for row in rows if row.peer == peer)
        thick = 3 if peer == "ours-extension" else 1.5
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{thick}"/>')
        label = max(ends[peer], labels[-1] + 14 if labels else 0)
        labels.append(label)
        parts.append(word(right + 8, label + 4, peer, colour=colour))
    return svg(height, parts)


def all_of(rows: list[Row]) -> dict[str, str]:
    """The plots that a run has rows for, by name."""

    def of(group: str, case: str, but: tuple[str, ...] = ()) -> list[Row]:
        return [row for row in rows if (row.group, row.case) == (group, case) and row.peer not in but]

    wanted = {
        "round": ("A round: 600-byte messages, 10 kB of other content, one process", of("round", "600B")),
        "wake": ("From deliver to the waiting process, which had waited for 1 ms", of("wake", "idle-1ms")),
        "calls": ("A plain call through nginx and php-fpm, 16 at once", of("request", "calls-16")),
        "answer": ("From the answer's POST to the tool's result", of("request", "answer-to-result")),
    }
    made = {name: bars(title, found) for name, (title, found) in wanted.items() if found}
    for name, title in (
        ("session", "A round, by what else the session holds"),
        ("sessions", "A round, by how many sessions are stored"),
        ("pending", "A round, by how many other requests of the session are pending"),
    ):
        found = [row for row in rows if row.group == "growth" and row.case.rpartition("-")[0] == name]
        cases = list(dict.fromkeys(row.case for row in found))
        if len(cases) > 1:
            made[f"growth-{name}"] = lines(title, cases, found)
    return made
