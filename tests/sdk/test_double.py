"""Every scenario comes right with our session manager on the double of the SDK, both generations, under nginx and php-fpm.

The real SDK, where there is one: tests/sdk/run.py (`make test-sdk`). SCENARIO_RUNS says how often each scenario runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import unittest

from support import busy_processors, double

from scenarios import Options
from sdk_scenarios import SCENARIOS, repeat

# Where a few seconds are not enough for two runs: the number by default.
FEWER = {"F": 1, "R": 1, "L": 1, "M": 1, "P": 1}
SEED = int(os.environ.get("SCENARIO_SEED", "1"))


class Scenarios:
    """One test for each scenario; the subclasses say on which generation."""

    generation: str
    ini: dict[str, object] = {}
    processors_kept_busy = 0
    url: str

    @classmethod
    def setUpClass(cls) -> None:
        stack = contextlib.ExitStack()
        cls.addClassCleanup(stack.close)
        cls.url, _ = stack.enter_context(double(cls.generation, ini=cls.ini))
        stack.enter_context(busy_processors(cls.processors_kept_busy))

    def comes_right(self, id: str) -> None:
        runs = int(os.environ.get("SCENARIO_RUNS", FEWER.get(id, 2)))
        size = 100 if id == "R" and "SCENARIO_RUNS" not in os.environ else 0
        options = Options(
            self.url,
            call_timeout=60,
            ask_timeout=50,
            question_timeout=40,
            random=random.Random(f"{SEED} {id}"),
            size=size,
        )
        tally = asyncio.run(repeat(id, options, runs))
        if not tally.is_right:
            raise AssertionError(f"{id}: {tally.right} of {tally.total} right, {tally.strayed} strayed", *tally.remarks)


for _id, (_title, _) in SCENARIOS.items():

    def _test(self: Scenarios, id: str = _id) -> None:
        self.comes_right(id)

    _test.__doc__ = f"{_id}: {_title}"
    setattr(Scenarios, f"test_{_id.replace('-', '_')}", _test)


class UpTo08(Scenarios, unittest.TestCase):
    generation = "08"
    ini = {"output_buffering": 4096}  # Debian's


class From09(Scenarios, unittest.TestCase):
    generation = "09"


class From09Busy(Scenarios, unittest.TestCase):
    generation = "09"
    processors_kept_busy = os.cpu_count() or 1


class BlobIsCaught(unittest.TestCase):
    """The test of the tests: on the double, a session that is read and written whole loses what it loses on the SDK."""

    def assert_caught(self, generation: str, *ids: str) -> None:
        with double(generation, "file") as (url, _):
            for id in ids:
                with self.subTest(id):
                    options = Options(url, call_timeout=5, ask_timeout=4, question_timeout=2)
                    tally = asyncio.run(repeat(id, options, 4))
                    self.assertFalse(tally.is_right, f"a blob got all {tally.total} right")

    def test_up_to_0_8(self) -> None:
        self.assert_caught("08", "A50z", "C-many", "D-silent", "G", "H")

    def test_from_0_9(self) -> None:
        self.assert_caught("09", "C-many", "E", "H")


if __name__ == "__main__":
    unittest.main()
