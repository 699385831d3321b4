"""The test of the tests: the scenarios see what a JSON blob loses, and that a lock mends it.

If these fail, the scenarios prove nothing about mcp-state.
"""

from __future__ import annotations

import asyncio
import unittest

from support import for_class, site

import scenarios
from scenarios import Options, Tally

RUNS = 5


def runs_until_wrong(url: str, id: str) -> Tally:
    """At most RUNS runs of a scenario, fewer when one is wrong."""
    tally = Tally()
    options = Options(url, call_timeout=5, ask_timeout=4, question_timeout=2)
    for _ in range(RUNS):
        tally.add(asyncio.run(scenarios.run(id, options)))
        if not tally.is_right:
            break
    return tally


class BlobIsCaught(unittest.TestCase):
    """mcp/sdk's way of keeping a session, on the same server and under the same client."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.url = for_class(cls, site("blob")).url

    def assert_caught(self, id: str) -> None:
        tally = runs_until_wrong(self.url, id)
        self.assertFalse(tally.is_right, f"{id}: a blob got all {tally.total} right in {RUNS} runs")

    def test_parallel_calls_without_delay(self) -> None:
        self.assert_caught("A50z")

    def test_parallel_questions(self) -> None:
        self.assert_caught("C-many")

    def test_a_question_that_expired_poisons_the_next(self) -> None:
        self.assert_caught("D-silent")

    def test_a_late_answer_reaches_a_later_question(self) -> None:
        self.assert_caught("D-late")

    def test_a_deleted_session_comes_back(self) -> None:
        self.assert_caught("G")

    def test_attributes_set_in_parallel(self) -> None:
        self.assert_caught("H")

    def test_progress_stalls_behind_another_stream(self) -> None:
        self.assert_caught("K")


class LockedBlobIsNotBlamed(unittest.TestCase):
    """A lock for each session does keep answers right: the comparison is a fair one."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.url = for_class(cls, site("blob-lock")).url

    def test_parallel_calls_and_questions_come_right(self) -> None:
        for id in ("A50z", "B12", "C-many", "D-silent", "H"):
            with self.subTest(id):
                tally = asyncio.run(scenarios.run(id, Options(self.url, call_timeout=60, ask_timeout=50)))
                self.assertEqual(tally.total, tally.right, tally.remarks)


if __name__ == "__main__":
    unittest.main()
