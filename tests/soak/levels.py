"""Whether a series of samples levels off.

The rule looks at the last half of the samples, since the first is for warming up. Through them goes the line of the median
slope (Theil and Sen), which outliers and sawtooth do not tilt. The *rise* is how far that line climbs over the last half;
the *spread* is how far the samples lie apart around it (from the 5th to the 95th percentile). A series grows when

* it rises by more than its spread: more than its own noise,
* and by more than its tolerance: 2% of its level, or a floor that depends on what is measured,
* and in both quarters that the last half consists of, by at least a quarter of the rise in each, and in the last at least
  half as much as in the one before: a leak goes on; a step or a late warm-up does not.

All else levels off. So a leak slower than max(spread, tolerance) in half a run goes unseen; `Trend.resolution` says how
much that is in an hour, and a longer run sees more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

FEWEST = 16
"""With fewer samples in the last half there is nothing to say."""
POINTS = 120
"""The line is drawn through the medians of so many groups of samples at most."""


@dataclass(frozen=True)
class Trend:
    """What the last half of a series does; sizes in the unit of its samples."""

    level: float
    """Their median."""
    rise: float
    spread: float
    tolerance: float
    quarters: tuple[float, float]
    """The rise in the third and in the last quarter of the run."""
    seconds: float
    """How long the last half took."""
    samples: int

    @property
    def is_known(self) -> bool:
        """Whether there are enough samples to say anything."""
        return self.samples >= FEWEST and self.seconds > 0

    @property
    def grows(self) -> bool:
        least = max(self.spread, self.tolerance)
        third, last = self.quarters
        goes_on = min(third, last) >= self.rise / 4 and last >= third / 2
        return self.is_known and self.rise > least and goes_on

    @property
    def resolution(self) -> float:
        """The slowest growth in an hour that this series would have shown."""
        return max(self.spread, self.tolerance) * 3600 / self.seconds if self.seconds > 0 else float("inf")


def trend(times: Sequence[float], values: Sequence[float], floor: float = 0.0) -> Trend:
    """Judges the samples `values`, taken at `times` (seconds, rising). `floor`: growth below it is none, whatever the level."""
    if len(times) != len(values):
        raise ValueError(f"{len(values)} samples for {len(times)} times")
    if not times:
        return Trend(0.0, 0.0, 0.0, floor, (0.0, 0.0), 0.0, 0)
    middle = (times[0] + times[-1]) / 2
    half = [(time, value) for time, value in zip(times, values) if time >= middle]
    three_quarters = (middle + times[-1]) / 2
    seconds = times[-1] - middle
    slope = median_slope(half)
    intercept = median(value - slope * time for time, value in half)
    distances = sorted(value - slope * time - intercept for time, value in half)
    last = len(distances) - 1
    level = median(value for _, value in half)
    return Trend(
        level=level,
        rise=slope * seconds,
        spread=distances[round(0.95 * last)] - distances[round(0.05 * last)],
        tolerance=max(floor, 0.02 * abs(level)),
        quarters=(
            median_slope([point for point in half if point[0] < three_quarters]) * seconds / 2,
            median_slope([point for point in half if point[0] >= three_quarters]) * seconds / 2,
        ),
        seconds=seconds,
        samples=len(half),
    )


def median_slope(points: Sequence[tuple[float, float]]) -> float:
    """The median of the slopes between any two points; 0 for less than two."""
    points = grouped(points)
    slopes = [
        (later[1] - earlier[1]) / (later[0] - earlier[0])
        for number, later in enumerate(points)
        for earlier in points[:number]
        if later[0] > earlier[0]
    ]
    return median(slopes) if slopes else 0.0


def grouped(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most POINTS points, each the median of neighbours."""
    size = -(-len(points) // POINTS) or 1
    groups = [points[start : start + size] for start in range(0, len(points), size)]
    return [(median(time for time, _ in group), median(value for _, value in group)) for group in groups]
