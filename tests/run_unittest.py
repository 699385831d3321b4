"""Runs one file of unittest tests and records every outcome as JUnit XML, for `tests/run`.

    python tests/run_unittest.py tests/system/test_servers.py OUTCOMES.xml
"""

from __future__ import annotations

import sys
import unittest
import xml.etree.ElementTree as ET
from pathlib import Path


class RecordingResult(unittest.TextTestResult):
    """One `testcase` for each test; one with failed subtests is one failure."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.cases: dict[str, ET.Element] = {}

    def record(self, test, outcome: str | None = None, message: str = "") -> None:
        case = self.cases.setdefault(test.id(), ET.Element("testcase", name=test.id()))
        if outcome and case.find(outcome) is None:
            ET.SubElement(case, outcome, message=message)

    def addSuccess(self, test) -> None:
        super().addSuccess(test)
        self.record(test)

    def addFailure(self, test, err) -> None:
        super().addFailure(test, err)
        self.record(test, "failure", str(err[1]))

    def addError(self, test, err) -> None:
        super().addError(test, err)
        self.record(test, "error", str(err[1]))

    def addSubTest(self, test, subtest, err) -> None:
        super().addSubTest(test, subtest, err)
        self.record(test, "failure" if err else None, str(err[1]) if err else "")

    def addSkip(self, test, reason: str) -> None:
        super().addSkip(test, reason)
        self.record(getattr(test, "test_case", test), "skipped", reason)

    def addExpectedFailure(self, test, err) -> None:
        super().addExpectedFailure(test, err)
        self.record(test)

    def addUnexpectedSuccess(self, test) -> None:
        super().addUnexpectedSuccess(test)
        self.record(test, "failure", "passed although a failure was expected")


def main(file: str, outcomes: str) -> int:
    path = Path(file).resolve()
    suite = unittest.defaultTestLoader.discover(str(path.parent), pattern=path.name, top_level_dir=str(path.parent))
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=RecordingResult).run(suite)
    root = ET.Element("testsuite", name=path.stem)
    root.extend(result.cases.values())
    ET.ElementTree(root).write(outcomes, encoding="utf-8")
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
