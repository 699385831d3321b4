"""The same sources build for PHP 8.4 and pass PHP's tests there: Debian 13's PHP, unpacked beside the system's."""

from __future__ import annotations

import re
import subprocess
import unittest

from lib.servers import ROOT

SECONDS = 600  # for one step; the first builds everything


def php84(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(ROOT / "scripts" / "php84"), *arguments]
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS
    )


class Php84(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        fetched = php84("fetch")
        if fetched.returncode == 2:
            raise unittest.SkipTest(f"PHP 8.4 could not be fetched ({fetched.stdout.strip().splitlines()[-1]})")
        built = php84("build")
        if built.returncode or not re.search(r"^PHP 8\.4\.\d+, mcp_state \d", built.stdout, re.MULTILINE):
            raise AssertionError(built.stdout)

    def test_the_extension_s_own_tests_pass(self) -> None:
        ran = php84("phpt")
        passed = re.search(r"Tests passed +: +(\d+) \(100\.0%\)", ran.stdout)
        self.assertTrue(ran.returncode == 0 and passed, ran.stdout)
        self.assertEqual(len(list((ROOT / "php/ext/tests").glob("*.phpt"))), int(passed[1]))

    def test_the_library_s_tests_pass(self) -> None:
        ran = php84("phpunit", "--colors=never")
        self.assertEqual(0, ran.returncode, ran.stdout)
        self.assertRegex(ran.stdout, r"OK")


if __name__ == "__main__":
    unittest.main()
