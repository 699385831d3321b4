#!/usr/bin/env python3
"""Everything that runs on the real `mcp/sdk`: PHPUnit's tests, the SDK's own ways, and all scenarios in one table.

    make test-sdk MCP_SDK_AUTOLOAD=…/vendor/autoload.php ARGS="--runs 20"

The arguments are those of run.py. Exit status 1 when anything failed.
"""

from __future__ import annotations

import os
import subprocess
import sys

from support import AUTOLOAD, EXTENSION, ROOT, SETUP


def main() -> int:
    here = ROOT / "tests/sdk"
    if AUTOLOAD is None:
        sys.exit("mcp/sdk is not installed: MCP_SDK_AUTOLOAD must name the vendor/autoload.php of an installation")
    ini = ROOT / "build" / "test-ini"
    ini.mkdir(parents=True, exist_ok=True)
    (ini / "mcp_state.ini").write_text(f'extension="{EXTENSION}"\n')
    env = os.environ | {
        "MCP_SDK_AUTOLOAD": str(AUTOLOAD),
        "PYTHONPATH": str(ROOT / "tests/system"),
    }
    php, phpunit = SETUP.get("PHP", "php"), SETUP.get("PHPUNIT", "phpunit")
    commands = [
        ("PHPUnit on the SDK's own classes", [php, phpunit, "-c", str(ROOT / "php/phpunit.xml.dist"), "--testsuite", "sdk"]),
        ("what a user meets", [sys.executable, str(here / "test_real.py"), "-v"]),
        ("the scenarios", [sys.executable, str(here / "run.py"), *sys.argv[1:]]),
    ]
    failed = []
    for name, command in commands:
        print(f"== {name}", flush=True)
        scanned = {"PHP_INI_SCAN_DIR": f":{ini}"} if command[0] == php else {}
        if subprocess.run(command, env=env | scanned, check=False).returncode != 0:
            failed.append(name)
    print(f"failed: {', '.join(failed)}" if failed else "all right")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
