"""The benchmark measures the same work for all and says what it did not measure; its ratios are what they claim to be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benches"))

from harness.instructions import inclusive  # noqa: E402
from harness.results import Repeat, Row, rows  # noqa: E402
from harness.rounds import EVERYBODY  # noqa: E402


class Ratios(unittest.TestCase):
    def test_a_ratio_is_taken_within_each_repeat(self) -> None:
        # The machine was ten times as slow in the second repeat, and hit both alike.
        ours = [Repeat(10, 20), Repeat(100, 200), Repeat(10, 20)]
        theirs = [Repeat(30, 40), Repeat(300, 400), Repeat(30, 40)]
        found = {row.peer: row for row in rows("round", "600B", {"ours-extension": ours, "sqlite": theirs})}
        self.assertEqual((1.0, 3.0, 3.0), (found["ours-extension"].ratio_to_ours, *[found["sqlite"].ratio_low, found["sqlite"].ratio_high]))
        self.assertEqual((30, 40, 3), (found["sqlite"].p50_ns, found["sqlite"].p99_ns, found["sqlite"].repeats))

    def test_a_row_is_read_as_it_was_written(self) -> None:
        row = Row("growth", "session-1MB", "sqlite", 1.0, 2.0, 3.0, 2.5, 3.5, 9, {"ratio_to_smallest": 1.1})
        self.assertEqual(row, Row.from_json(json.loads(json.dumps(row.as_json()))))


class Instructions(unittest.TestCase):
    def test_calls_are_summed_with_all_they_call_and_divided_by_their_number(self) -> None:
        operations = ("send", "take", "deliver", "claim", "get", "patch")
        blocks = [f"cfn=({n}) mcp_state_bench::hot::{name}\ncalls=2 +1\n* {(n + 1) * 10}\n* 7" for n, name in enumerate(operations)]
        again = "cfn=(0)\ncalls=2 +1\n+3 30\n* 9"
        with tempfile.TemporaryDirectory() as directory:
            out = Path(directory) / "callgrind"
            out.write_text("fn=(9) mcp_state_bench::hot::run\n" + "\n".join([*blocks, again]) + "\n")
            counts = inclusive(out)
        self.assertEqual([10, 10, 15, 20, 25, 30], [counts[name] for name in operations])


class Runs(unittest.TestCase):
    def test_every_peer_is_measured_or_said_to_be_missing(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            run = [sys.executable, ROOT / "benches/run", "--quick", "--only", "round", "--case", "600B", "--out", directory]
            done = subprocess.run(run, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": ""}, timeout=300)
            self.assertEqual(0, done.returncode, done.stderr)
            results = json.loads((Path(directory) / "results.json").read_text())
        measured = {row["peer"] for row in results["rows"] if row["case"] == "600B"}
        self.assertEqual(set(EVERYBODY), measured | results["skipped"].keys() - {"instructions"})
        for row in results["rows"]:
            self.assertGreater(row["p50_ns"], 0, row)
            self.assertGreaterEqual(row["p99_ns"], row["p50_ns"], row)
            self.assertEqual(0, row.get("wrong_in_1000", 0), row)


if __name__ == "__main__":
    unittest.main()
