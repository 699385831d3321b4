"""The rule that decides whether a series levels off, on series that are known to level off and on ones that leak."""

from __future__ import annotations

import math
import random
import unittest
from collections.abc import Callable
from pathlib import Path
import sys

sys.path.insert(0, str(Path(__file__).resolve().parent))

from levels import trend  # noqa: E402

Made = Callable[[float, random.Random], float]
"""The sample at a time from 0 (the run's start) to 1 (its end)."""

SEEDS = range(20)
MIB = float(1 << 20)


def noise(rng: random.Random, size: float) -> float:
    return rng.gauss(0, size)


def sawtooth(at: float, teeth: int) -> float:
    """From 0 to 1, again and again."""
    return at * teeth % 1


LEVEL: dict[str, Made] = {
    "always the same": lambda at, rng: 40 * MIB,
    "nothing at all": lambda at, rng: 0.0,
    "noise": lambda at, rng: 40 * MIB + noise(rng, MIB),
    "workers that grow and are replaced": lambda at, rng: 40 * MIB + 5 * MIB * sawtooth(at + rng.random() / 100, 23),
    "long teeth": lambda at, rng: 40 * MIB + 5 * MIB * sawtooth(at, 5),
    "warming up, then level": lambda at, rng: 40 * MIB * (1 - math.exp(-6 * at)) + noise(rng, MIB / 10),
    "a step in the last half": lambda at, rng: (40 if at < 0.7 else 45) * MIB + noise(rng, MIB / 10),
    "a high-water mark that rises ever less": lambda at, rng: 40 * MIB + 2 * MIB * math.floor(math.log2(1 + 400 * at)),
    "falling": lambda at, rng: 40 * MIB - 10 * MIB * at + noise(rng, MIB),
    "rare peaks": lambda at, rng: 40 * MIB + (60 * MIB if rng.random() < 0.02 else 0) + noise(rng, MIB / 10),
    "less than the floor": lambda at, rng: MIB + 60 * 1024 * at,
    "few and whole numbers": lambda at, rng: float(rng.choice([3, 4, 4, 5])),
}

LEAK: dict[str, Made] = {
    "a little, always": lambda at, rng: 40 * MIB + 2 * MIB * at,
    "in noise": lambda at, rng: 40 * MIB + 10 * MIB * at + noise(rng, MIB / 2),
    "one by one": lambda at, rng: 16.0 + math.floor(40 * at),
    "under a sawtooth": lambda at, rng: 40 * MIB + 5 * MIB * sawtooth(at, 23) + 20 * MIB * at,
    "after a step": lambda at, rng: (40 if at < 0.7 else 45) * MIB + 10 * MIB * at + noise(rng, MIB / 10),
    "ever faster": lambda at, rng: 40 * MIB * math.exp(1.5 * at) + noise(rng, MIB / 10),
    "in steps": lambda at, rng: 40 * MIB + MIB * math.floor(20 * at) + noise(rng, MIB / 10),
    "with rare peaks": lambda at, rng: 40 * MIB + 8 * MIB * at + (60 * MIB if rng.random() < 0.02 else 0),
    "from nothing": lambda at, rng: MIB * at,
}


def series(made: Made, seed: int, count: int = 360, seconds: float = 720.0) -> tuple[list[float], list[float]]:
    rng = random.Random(seed)
    moments = [number / (count - 1) for number in range(count)]
    return [at * seconds for at in moments], [made(at, rng) for at in moments]


class Rule(unittest.TestCase):
    def test_what_levels_off_is_no_leak(self) -> None:
        for name, made in LEVEL.items():
            for seed in SEEDS:
                found = trend(*series(made, seed), floor=64 * 1024 if made(0, random.Random(0)) > 1000 else 1)
                self.assertTrue(found.is_known)
                self.assertFalse(found.grows, f"{name}, seed {seed}: {found}")

    def test_what_leaks_is_seen(self) -> None:
        for name, made in LEAK.items():
            for seed in SEEDS:
                found = trend(*series(made, seed), floor=64 * 1024 if made(1, random.Random(0)) > 1000 else 1)
                self.assertTrue(found.grows, f"{name}, seed {seed}: {found}")

    def test_noise_that_follows_itself_is_no_leak(self) -> None:
        """As the number of sessions does: each sample is near the one before."""
        grows = 0
        for seed in range(200):
            rng = random.Random(seed)
            value, values = 0.0, []
            for _ in range(360):
                value = 0.9 * value + rng.gauss(0, 5)
                values.append(100 + value)
            grows += trend([2.0 * number for number in range(360)], values, floor=2).grows
        self.assertLessEqual(grows, 2, "of 200 such series")

    def test_a_leak_of_what_the_resolution_says_is_seen(self) -> None:
        for seed in SEEDS:
            times, values = series(lambda at, rng: 40 * MIB + noise(rng, MIB / 4), seed)
            found = trend(times, values, floor=64 * 1024)
            self.assertFalse(found.grows)
            leaking = [value + 1.3 * found.resolution * time / 3600 for time, value in zip(times, values)]
            self.assertTrue(trend(times, leaking, floor=64 * 1024).grows, f"seed {seed}: {found}")

    def test_a_slow_leak_shows_in_a_longer_run(self) -> None:
        def made(hours: float) -> Made:
            return lambda at, rng: 40 * MIB + hours * 3 * MIB * at + noise(rng, MIB)

        self.assertFalse(trend(*series(made(0.2), 1, 360, 720.0)).grows)
        self.assertTrue(trend(*series(made(8), 1, 2000, 8 * 3600.0)).grows)

    def test_samples_at_odd_times_are_judged_by_their_times(self) -> None:
        rng = random.Random(7)
        times = sorted(rng.uniform(0, 720) for _ in range(300))
        self.assertTrue(trend(times, [time / 100 for time in times], floor=1).grows)
        self.assertFalse(trend(times, [5.0 for _ in times], floor=1).grows)

    def test_a_few_samples_say_nothing(self) -> None:
        for count in (0, 1, 2, 10):
            found = trend([float(number) for number in range(count)], [float(100 * number) for number in range(count)])
            self.assertFalse(found.is_known, f"{count} samples")
            self.assertFalse(found.grows, f"{count} samples")


if __name__ == "__main__":
    unittest.main()
