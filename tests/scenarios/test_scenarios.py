"""Every scenario of examples/client/scenarios.py comes right, under nginx and php-fpm, whatever the interleaving.

Each runs SCENARIO_RUNS times (a few by default; `tests/scenarios/run.py --runs 20` is the full proof), plainly and with
seeded random delays around every operation while no processor is idle.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import unittest

from support import Site, busy_processors, for_class, site

import scenarios
from scenarios import SCENARIOS, Options, Tally

# Where a few seconds are not enough for three runs: the number by default. R is shorter as well, see `size`.
FEWER = {"F": 1, "R": 1, "L": 1, "M": 1}
SEED = int(os.environ.get("SCENARIO_SEED", "1"))


class Scenarios:
    """One test for each scenario; the subclasses say on what server."""

    env: dict[str, str] = {}
    processors_kept_busy = 0
    runs = 3
    sees_processes = True
    url: str

    @classmethod
    def served(cls) -> contextlib.AbstractContextManager[Site]:
        return site(**cls.env)

    @classmethod
    def setUpClass(cls) -> None:
        cls.url = for_class(cls, cls.served()).url
        spinning = busy_processors(cls.processors_kept_busy)
        spinning.__enter__()
        cls.addClassCleanup(spinning.__exit__, None, None, None)

    def comes_right(self, id: str) -> None:
        runs = int(os.environ.get("SCENARIO_RUNS", min(self.runs, FEWER.get(id, 3))))
        size = 300 if id == "R" and "SCENARIO_RUNS" not in os.environ else 0
        options = Options(
            self.url,
            call_timeout=60,
            ask_timeout=50,
            question_timeout=40,
            random=random.Random(f"{SEED} {id}"),
            size=size,
            sees_processes=self.sees_processes,
        )
        tally = asyncio.run(repeat(id, options, runs))
        if not tally.is_right:
            raise AssertionError(f"{id}: {tally.right} of {tally.total} right, {tally.strayed} strayed", *tally.remarks)


async def repeat(id: str, options: Options, runs: int) -> Tally:
    tally = Tally()
    for _ in range(runs):
        tally.add(await scenarios.run(id, options))
    return tally


for _id, (_title, _) in SCENARIOS.items():

    def _test(self: Scenarios, id: str = _id) -> None:
        self.comes_right(id)

    _test.__doc__ = f"{_id}: {_title}"
    setattr(Scenarios, f"test_{_id.replace('-', '_')}", _test)


class Plain(Scenarios, unittest.TestCase):
    """As a server runs on any day."""


class DelayedAndBusy(Scenarios, unittest.TestCase):
    """With up to 3 ms between any two operations, and all processors busy."""

    env = {"MCP_STATE_DELAYS": f"{SEED}:3000"}
    processors_kept_busy = os.cpu_count() or 1


if __name__ == "__main__":
    unittest.main()
