"""Every scenario comes right with our session manager on the double of the SDK, both generations, under nginx and php-fpm.

The real SDK, where there is one: tests/sdk/run.py (`make test-sdk`). SCENARIO_RUNS says how often each scenario runs.
"""

from __future__ import annotations

import asyncio
import os
import unittest

from support import DOUBLE, double

from scenarios import Options
from sdk_scenarios import Scenarios, repeat
from stdio_scenarios import StdioScenarios


class UpTo08(Scenarios, unittest.TestCase):
    @classmethod
    def served(cls):
        return double("08", ini={"output_buffering": 4096})  # Debian's


class From09(Scenarios, unittest.TestCase):
    @classmethod
    def served(cls):
        return double("09")


class From09Busy(From09):
    processors_kept_busy = os.cpu_count() or 1


class StdioUpTo08(StdioScenarios, unittest.TestCase):
    script = DOUBLE.with_name("stdio.php")
    env = {"MCP_DOUBLE_GENERATION": "08"}


class StdioFrom09(StdioUpTo08):
    env = {"MCP_DOUBLE_GENERATION": "09"}


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
