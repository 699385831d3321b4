"""What a soak found: a table for people, JSON for programs, and a plot (SVG) that can be read on light and dark ground."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from statistics import median
from typing import Any

from levels import Trend, trend
from samples import SERIES, Sample, Series

COLUMNS, WIDTH, HEIGHT, GAP = 3, 300, 92, 26
LEFT, TOP, BOTTOM = 8, 38, 4
STYLE = """
text { font: 11px system-ui, sans-serif; fill: #24292f }
.small { font-size: 10px; fill: #57606a }
.ground { fill: #818b981f }
.line { fill: none; stroke: #0969da; stroke-width: 1.5; stroke-linejoin: round }
.reload { stroke: #9a6700; stroke-width: 1; stroke-dasharray: 2 3 }
.kill { stroke: #cf222e; stroke-width: 1 }
.grows { fill: #cf222e; font-weight: bold }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .small { fill: #9198a1 } .line { stroke: #4493f8 }
  .reload { stroke: #d29922 } .kill { stroke: #f85149 } .grows { fill: #f85149 }
}
"""


@dataclass
class Result:
    """A soak that is over."""

    title: str
    settings: dict[str, Any]
    seconds: float
    samples: list[Sample]
    done: dict[str, int]
    noted: dict[str, int]
    errors: dict[str, int]
    remarks: list[str]
    kills: list[float]
    """Seconds since the start."""
    reloads: list[float]
    waits: dict[str, float]
    """Milliseconds from a client's answer to the result of the call that asked."""
    after: dict[str, Any] = field(default_factory=dict)
    """What the store held when everybody had left."""
    judge_levels: bool = True

    def trends(self) -> list[tuple[Series, Trend]]:
        """Of every series that was sampled."""
        found = []
        for series in SERIES:
            points = [(sample["at"], sample[series.name]) for sample in self.samples if series.name in sample]
            if points:
                found.append((series, trend(*zip(*points), floor=series.floor)))
        return found

    def growing(self) -> list[str]:
        return [series.title for series, found in self.trends() if found.grows]

    @property
    def wrong(self) -> int:
        return sum(self.errors.values())

    @property
    def is_good(self) -> bool:
        return self.wrong == 0 and not (self.judge_levels and self.growing())

    def verdict(self) -> str:
        """The last line."""
        growing = self.growing()
        unknown = [series.title for series, found in self.trends() if not found.is_known]
        if not self.judge_levels or unknown:
            levels = "too short to say what levels off"
        else:
            levels = f"GROWING: {', '.join(growing)}" if growing else f"all {len(self.trends())} series level off"
        calls = sum(self.done.values())
        return (
            f"soak: {self.seconds / 60:.1f} min, {calls:,} checks right, {self.wrong} wrong, {len(self.kills)} workers killed, "
            f"{len(self.reloads)} reloads; {levels} (seed {self.settings.get('seed')})"
        )

    # -- text

    def to_text(self) -> str:
        lines = [self.title, "", *self.levels_table(), ""]
        lines += table("what was checked, and right", self.done)
        lines += table("allowed, and counted", self.noted)
        lines += table("wrong", self.errors) if self.errors else ["nothing was wrong"]
        lines += [f"    {remark}" for remark in self.remarks]
        if self.waits:
            waits = ", ".join(f"{name} {value:.1f} ms" for name, value in self.waits.items())
            lines += ["", f"from an answer to the result of the call that asked: {waits}"]
        if self.after:
            lines += ["", "when everybody had left: " + ", ".join(f"{name} {value}" for name, value in self.after.items())]
        return "\n".join([*lines, "", self.verdict(), ""])

    def levels_table(self) -> list[str]:
        """The medians of the run's quarters, what the last half does, and what it would have shown."""
        lines = [
            f"{'':<40}{'1st quarter':>12}{'2nd':>10}{'3rd':>10}{'4th':>10}{'most':>10}{'rise':>10}{'spread':>10}{'seen from':>14}",
        ]
        for series, found in self.trends():
            values = [sample[series.name] for sample in self.samples if series.name in sample]
            quarters = self.quarters(series)
            cells = [shown(value, series.unit) for value in (*quarters, max(values), found.rise, found.spread)]
            widths = (12, 10, 10, 10, 10, 10, 10)
            row = f"{series.title:<40}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths))
            seen = f"{shown(found.resolution, series.unit)}/h" if found.is_known else "-"
            verdict = "GROWS" if found.grows else "" if found.is_known else "?"
            lines.append(f"{row}{seen:>14}  {verdict}".rstrip())
        return lines

    def quarters(self, series: Series) -> list[float]:
        """The median of each quarter of the run."""
        if not self.samples:
            return []
        end = self.samples[-1]["at"] or 1.0
        parts: list[list[float]] = [[], [], [], []]
        for sample in self.samples:
            if series.name in sample:
                parts[min(3, int(4 * sample["at"] / end))].append(sample[series.name])
        return [median(part) if part else float("nan") for part in parts]

    # -- JSON

    def to_json(self) -> dict[str, Any]:
        levels = {
            series.name: asdict(found) | {"grows": found.grows, "is_known": found.is_known, "resolution": found.resolution}
            for series, found in self.trends()
        }
        return asdict(self) | {"levels": levels, "growing": self.growing(), "is_good": self.is_good, "verdict": self.verdict()}

    # -- SVG

    def to_svg(self) -> str:
        trends = self.trends()
        rows = -(-len(trends) // COLUMNS)
        width, height = COLUMNS * (WIDTH + GAP) + LEFT, TOP + rows * (HEIGHT + GAP + 14) + BOTTOM
        end = max((sample["at"] for sample in self.samples), default=1.0) or 1.0
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
            f"<title>{escape(self.verdict())}</title><style>{STYLE}</style>",
            f'<text x="{LEFT}" y="18">{escape(self.title)}, {self.seconds / 60:.0f} minutes; '
            "each scale from 0; the median of the last half; red ticks: a worker is killed; dashed: graceful reload</text>",
        ]
        for number, (series, found) in enumerate(trends):
            column, row = number % COLUMNS, number // COLUMNS
            x, y = LEFT + column * (WIDTH + GAP), TOP + row * (HEIGHT + GAP + 14)
            parts.append(f'<g transform="translate({x} {y})">{"".join(self.panel(series, found, end))}</g>')
        return "\n".join([*parts, "</svg>", ""])

    def panel(self, series: Series, found: Trend, end: float) -> Iterable[str]:
        points = [(sample["at"], sample[series.name]) for sample in self.samples if series.name in sample]
        most = max(value for _, value in points)
        top = most * 1.1 or 1.0
        name, note = escape(series.title), f"{shown(found.level, series.unit)}, most {shown(most, series.unit)}"
        yield f'<text y="10" class="{"grows" if found.grows else ""}">{name}{" GROWS" if found.grows else ""}</text>'
        yield f'<text class="small" x="{WIDTH}" y="10" text-anchor="end">{escape(note)}</text>'
        yield f'<g transform="translate(0 16)"><rect class="ground" width="{WIDTH}" height="{HEIGHT}"/>'
        for at in self.reloads:
            yield f'<path class="reload" d="M{WIDTH * at / end:.1f} 0V{HEIGHT}"/>'
        yield f'<path class="kill" d="{"".join(f"M{WIDTH * at / end:.1f} {HEIGHT}v-4" for at in self.kills)}"/>'
        line = " ".join(f"{WIDTH * at / end:.1f},{HEIGHT * (1 - value / top):.1f}" for at, value in thinned(points))
        yield f'<polyline class="line" points="{line}"/></g>'


def thinned(points: Sequence[tuple[float, float]], most: int = 300) -> list[tuple[float, float]]:
    """At most `most` points and the last one, for a plot no wider than that."""
    step = -(-len(points) // most)
    return [*points[::step], points[-1]]


def table(title: str, counts: dict[str, int]) -> list[str]:
    return [title, *(f"  {name:<44}{count:>10,}" for name, count in sorted(counts.items())), ""]


def shown(value: float, unit: str) -> str:
    """A number in at most three digits and a unit."""
    if value != value:
        return "-"
    if unit != "B":
        return f"{value:.0f}" if value == int(value) or abs(value) >= 100 else f"{value:.1f}"
    size, name = abs(value), "B"
    for name in ("B", "KiB", "MiB", "GiB"):
        if size < 1000 or name == "GiB":
            break
        size /= 1024
    digits = 0 if name == "B" or size >= 100 else 1 if size >= 10 else 2
    return f"{'-' if value < 0 else ''}{size:.{digits}f} {name}"
