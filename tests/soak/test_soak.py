"""The soak itself: a short run is right in every answer; a server that loses answers, or grows, does not pass."""

from __future__ import annotations

import contextlib
import json
import random
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parent))

from run import Settings, Soak, command_line, write  # noqa: E402  (it finds the client)
from load import Ledger, Over, Visit, match  # noqa: E402
from report import Result  # noqa: E402
from samples import SERIES  # noqa: E402

SHORT = {"ttl": 4.0, "reload_every": 5.0, "kill_every": 1.0, "max_requests": 40, "sample_every": 1.0}


def soak(seconds: float, **settings: object) -> Result:
    result = Soak(Settings(seconds=seconds, **SHORT | settings), command_line()).run()
    result.judge_levels = False
    return result


class Smoke(unittest.TestCase):
    def test_every_answer_is_right_while_workers_come_and_go(self) -> None:
        result = soak(15.0)
        self.assertTrue(result.is_good, result.to_text())
        self.assertTrue(result.kills and result.reloads, result.to_text())
        for what in ("ask, answered", "ask, never answered", "cancelled call", "remember", "recall", "published message", "once"):
            self.assertGreater(result.done.get(what, 0), 0, f"{what}\n{result.to_text()}")
        self.assertEqual([series.name for series in SERIES], [series.name for series, _ in result.trends()], "all are sampled")
        self.assertEqual({"contradictions": 0, "sessions": 0}, {name: result.after[name] for name in ("contradictions", "sessions")})
        with tempfile.TemporaryDirectory() as folder:
            write(result, Path(folder))
            plot = ET.parse(Path(folder) / "soak.svg")
            self.assertEqual(len(SERIES), len(plot.findall(".//{http://www.w3.org/2000/svg}polyline")))
            self.assertEqual(result.verdict(), json.loads((Path(folder) / "figures.json").read_text())["verdict"])
            self.assertTrue((Path(folder) / "figures.txt").read_text().rstrip().endswith(result.verdict()))

    def test_sessions_that_are_written_whole_do_not_pass(self) -> None:
        result = soak(4.0, mode="blob")
        self.assertFalse(result.is_good)
        self.assertGreater(result.errors.get("lost", 0) + result.errors.get("swapped", 0), 0, result.to_text())


class Kills(unittest.TestCase):
    """A kill excuses one exchange that was open at that moment."""

    def test_a_broken_exchange_without_a_kill_is_lost(self) -> None:
        ledger = Ledger(cuts=[(0.0, 1.0, "echo"), (2.0, 3.0, "ask")], kills=[(2.5, 2.5)])
        ledger.settle()
        self.assertEqual({"lost": 1}, dict(ledger.errors))
        self.assertIn("echo", ledger.remarks[0])

    def test_a_kill_before_or_after_excuses_nothing(self) -> None:
        self.assertEqual((0, [(1.0, 2.0, "echo")]), match([(1.0, 2.0, "echo")], [(0.5, 0.6), (2.1, 2.2)]))

    def test_one_kill_excuses_one_exchange(self) -> None:
        excused, left = match([(0.0, 2.0, "one"), (0.0, 3.0, "other")], [(1.0, 1.0)])
        self.assertEqual((1, ["other"]), (excused, [what for _, _, what in left]))

    def test_kills_are_given_to_those_that_can_have_no_other(self) -> None:
        cuts = [(0.0, 9.0, "long"), (0.0, 2.0, "short")]
        self.assertEqual((2, []), match(cuts, [(1.0, 1.0), (5.0, 5.0)]))
        self.assertEqual((2, []), match(cuts, [(5.0, 5.0), (1.0, 1.0)]))


class Expiry(unittest.IsolatedAsyncioTestCase):
    """TTL 4 s; each use as (began, ended); the last is answered with 404."""

    def wrong(self, *uses: tuple[float, float]) -> list[str]:
        ledger = Ledger()
        visit = Visit(SimpleNamespace(ledger=ledger, url="http://127.0.0.1:1/"), random.Random(1), 4.0)
        for status, (began, ended) in zip((*[200] * (len(uses) - 1), 404), uses, strict=True):
            reply = SimpleNamespace(status=status, finished=ended, timed_out=False, broken="", messages=[])
            with contextlib.suppress(Over):
                visit.came("use", reply, began)
        return list(ledger.errors)

    async def test_a_session_that_was_used_is_there(self) -> None:
        self.assertEqual(["session lost"], self.wrong((0.0, 0.1), (0.2, 0.3)))

    async def test_a_session_may_expire_when_three_quarters_of_its_time_are_over(self) -> None:
        self.assertEqual([], self.wrong((0.0, 0.1), (3.2, 3.3)))

    async def test_of_two_uses_at_the_moment_of_expiry_one_may_find_it(self) -> None:
        self.assertEqual([], self.wrong((0.0, 0.1), (3.9, 4.1), (3.9, 4.0)))


class Verdict(unittest.TestCase):
    """What makes a soak fail."""

    def result(self, per_sample: float = 0.0, **more: object) -> Result:
        samples = [{"at": 2.0 * number, "steady_own": 1e7 + per_sample * number, "owners": 3} for number in range(200)]
        empty = {"done": {"echo": 5}, "noted": {}, "errors": {}, "remarks": [], "kills": [1.0], "reloads": [9.0], "waits": {}}
        return Result(**{"title": "t", "settings": {"seed": 1}, "seconds": 400.0, "samples": samples} | empty | more)

    def test_level_and_right_is_good(self) -> None:
        self.assertTrue(self.result().is_good)
        self.assertIn("all 2 series level off", self.result().verdict())

    def test_growth_is_not(self) -> None:
        result = self.result(per_sample=10_000.0)
        self.assertFalse(result.is_good)
        self.assertEqual(["steady workers: own memory"], result.growing())
        self.assertIn("GROWS", result.to_text())
        self.assertIn("GROWS", result.to_svg())
        self.assertNotIn("GROWS", self.result().to_svg())

    def test_one_wrong_answer_is_not(self) -> None:
        self.assertFalse(self.result(errors={"lost": 1}, remarks=["lost: echo"]).is_good)

    def test_a_run_too_short_to_judge_says_so(self) -> None:
        result = self.result()
        result.samples = result.samples[:10]
        self.assertIn("too short", result.verdict())


if __name__ == "__main__":
    unittest.main()
