"""scripts/setup on machines made of stubs: what it asks for, what it leaves alone, and that it never waits for anybody."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = (
    "bash sh cat cksum chmod cut dirname env grep head ls mkdir mv printf readlink rm sed sort tail tee touch true"
).split()


class Machine:
    """A PATH that holds only what a test puts there, and a checkout of its own. Each stub notes how it was called."""

    def __init__(self, directory: Path) -> None:
        self.bin = directory / "usr" / "bin"
        self.local = directory / "usr" / "local" / "bin"
        self.home = directory / "home"
        self.checkout = directory / "checkout"
        self.policy = directory / "policy-rc.d"
        self.calls_file = directory / "calls"
        for path in (self.bin, self.local, self.home, self.checkout / "scripts", self.checkout / "tests"):
            path.mkdir(parents=True)
        for file in ("scripts/setup", "Cargo.toml", "tests/requirements.txt"):
            shutil.copy(ROOT / file, self.checkout / file)
        for command in COMMANDS:
            (self.bin / command).symlink_to(shutil.which(command))
        self.stub("id", "echo 1000")
        self.stub("dpkg", "exit 1")
        self.stub("apt-get", "exit 0")
        self.stub("apt-cache", "exit 0")
        for tool in ("gcc", "clang", "make"):
            self.stub(tool, "exit 0")
        self.rust("1.95.0")

    def stub(self, name: str, script: str, where: Path | None = None) -> Path:
        path = (where or self.bin) / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >>{self.calls_file}\n{script}\n')
        path.chmod(0o755)
        return path

    def rust(self, version: str) -> None:
        self.stub("cargo", f"echo cargo {version} '(abc 2026-01-01)'")
        self.stub("rustc", f"echo rustc {version} '(abc 2026-01-01)'")

    def php(self, version: str, api: int, *, name: str = "php", where: Path | None = None, package: str = "") -> None:
        where = where or self.bin
        major, minor, patch = version.split(".")
        number = int(major) * 10000 + int(minor) * 100 + int(patch)
        facts = f"{number} {version} {api} nts {where / name}"
        self.stub(name, f'case $1 in -m) echo Core ;; *) echo "{facts}" ;; esac', where)
        if package:
            self.stub("dpkg", f'[ "$2" = {where / name} ] && echo "{package}: $2"')

    def php_config(self, api: int, *, name: str = "php-config", where: Path | None = None) -> None:
        headers = self.checkout.parent / f"include-{api}"
        (headers / "main").mkdir(parents=True, exist_ok=True)
        (headers / "main" / "php_config.h").write_text("/* #undef ZTS */\n")
        self.stub(name, f"case $1 in --phpapi) echo {api} ;; --include-dir) echo {headers} ;; esac", where)

    def setup(self, purpose: str = "build", **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": f"{self.local}:{self.bin}",
            "HOME": str(self.home),
            "LIBCLANG_PATH": "/stub",
            "SSL_CERT_FILE": "/stub",
            "POLICY_RC_D": str(self.policy),
        }
        # A terminal nobody sits at: a prompt would wait for ever, and end as a failed test.
        read, write = os.pipe()
        try:
            return subprocess.run(
                [str(self.checkout / "scripts/setup"), purpose],
                env=environment | variables, stdin=read, capture_output=True, text=True, timeout=120,
            )
        finally:
            os.close(read)
            os.close(write)

    def calls(self, name: str) -> list[str]:
        lines = self.calls_file.read_text().splitlines() if self.calls_file.exists() else []
        return [line for line in lines if line.split()[0] == name]

    def found(self) -> dict[str, str]:
        lines = (self.checkout / "build" / "env.sh").read_text().splitlines()
        return dict(line.removeprefix("export ").split("=", 1) for line in lines if line.startswith("export "))


def asked_for(result: subprocess.CompletedProcess[str]) -> set[str]:
    """The packages in the one line to copy; fails unless there is exactly one."""
    [line] = [line for line in result.stderr.splitlines() if "apt-get install" in line]
    return {word for word in line.split("install", 1)[1].split() if not word.startswith("-")}


class Setup(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory(prefix="mcp-state-setup-")
        self.addCleanup(directory.cleanup)
        self.machine = Machine(Path(directory.name))

    def test_where_nothing_is_missing_it_only_looks(self) -> None:
        self.machine.php("8.2.13", 20220829, package="php8.2-cli")
        self.machine.php_config(20220829)
        result = self.machine.setup()
        self.assertEqual((0, "", ""), (result.returncode, result.stdout, result.stderr))
        self.assertEqual([], self.machine.calls("apt-get") + self.machine.calls("sudo"))
        found = self.machine.found()
        self.assertEqual(str(self.machine.bin / "php"), found["PHP"])
        self.assertEqual(str(self.machine.bin / "php-config"), found["PHP_CONFIG"])
        self.assertEqual("20220829-nts", found["PHP_ABI"])

    def test_a_set_up_for_less_keeps_what_one_for_the_tests_has_found(self) -> None:
        self.machine.php("8.2.13", 20220829, package="php8.2-cli")
        self.machine.php_config(20220829)
        self.assertEqual(0, self.machine.setup().returncode)
        with (self.machine.checkout / "build" / "env.sh").open("a") as file:
            file.write("export PHPUNIT=/found/phpunit\n")
        self.assertEqual(0, self.machine.setup().returncode)
        self.assertEqual("/found/phpunit", self.machine.found()["PHPUNIT"])

    def test_without_root_one_line_names_all_that_is_missing(self) -> None:
        self.machine.php("8.3.1", 20230831, name="php8.3", package="php8.3-cli")
        (self.machine.bin / "clang").unlink()
        (self.machine.bin / "gcc").unlink()
        for sudo in ("absent", "asks for a password"):
            with self.subTest(sudo=sudo):
                if sudo != "absent":
                    self.machine.stub("sudo", '[ "$1" = -n ] || read answer\nexit 1')
                result = self.machine.setup()
                self.assertEqual(2, result.returncode)
                self.assertEqual({"php8.3-dev", "clang", "libclang-dev", "gcc", "libc6-dev"}, asked_for(result))
                self.assertEqual([], self.machine.calls("apt-get"))
                self.assertFalse((self.machine.checkout / "build" / "env.sh").exists())

    def test_without_php_the_distributions_is_asked_for_with_all_that_the_tests_need(self) -> None:
        result = self.machine.setup("test", NGINX="no-such-nginx", PYTHON=shutil.which("true"))
        self.assertEqual(2, result.returncode)
        wanted = {"php-cli", "php-dev", "php-fpm", "php-curl", "php-mbstring", "php-xml", "php-apcu", "php-sqlite3"}
        self.assertLessEqual(wanted | {"phpunit", "php-codesniffer"}, asked_for(result))

    def test_headers_are_those_of_the_php_found_not_of_another_php_config_on_the_path(self) -> None:
        self.machine.php("8.2.13", 20220829, name="php8.2", package="php8.2-cli")
        self.machine.php_config(20230831)
        self.assertEqual({"php8.2-dev"}, asked_for(self.machine.setup()))
        self.machine.php_config(20220829, name="php-config8.2")
        self.assertEqual(0, self.machine.setup().returncode)
        self.assertEqual(str(self.machine.bin / "php-config8.2"), self.machine.found()["PHP_CONFIG"])

    def test_a_php_that_came_from_no_package_gets_no_second_php_beside_it(self) -> None:
        self.machine.php("8.4.2", 20240924, where=self.machine.local)
        self.machine.php("8.2.13", 20220829, package="php8.2-cli")
        self.machine.php("8.4.2", 20240924, where=self.machine.local)
        self.machine.php_config(20220829)
        result = self.machine.setup()
        self.assertEqual(2, result.returncode)
        self.assertIn(f"{self.machine.local / 'php'} (API 20240924, nts) came from no package", result.stderr)
        self.assertNotIn("apt-get", result.stderr)

        self.machine.php_config(20240924, where=self.machine.local)
        self.assertEqual(0, self.machine.setup().returncode)
        self.assertEqual(str(self.machine.local / "php"), self.machine.found()["PHP"])
        (self.machine.bin / "make").unlink()
        asked = asked_for(self.machine.setup("test"))
        self.assertIn("make", asked)
        self.assertEqual([], [name for name in asked if name.startswith("php")])

    def test_php_and_php_config_can_be_named_and_must_belong_together(self) -> None:
        self.machine.php("8.2.13", 20220829)
        self.machine.php("8.4.2", 20240924, name="php8.4", where=self.machine.local)
        self.machine.php_config(20220829)
        chosen = str(self.machine.local / "php8.4")
        result = self.machine.setup(PHP=chosen, PHP_CONFIG=str(self.machine.bin / "php-config"))
        self.assertEqual(2, result.returncode)
        self.assertIn("(API 20220829) does not belong to", result.stderr)
        self.machine.php_config(20240924, name="php-config8.4", where=self.machine.local)
        self.assertEqual(0, self.machine.setup(PHP=chosen).returncode)
        self.assertEqual(chosen, self.machine.found()["PHP"])

    def test_a_php_that_is_too_old_is_named(self) -> None:
        self.machine.php("7.4.33", 20190902, package="php7.4-cli")
        result = self.machine.setup()
        self.assertEqual(2, result.returncode)
        self.assertIn("is PHP 7.4.33; mcp-state needs 8.1 or later", result.stderr)

    def test_with_sudo_that_needs_no_password_it_installs_and_no_service_starts(self) -> None:
        self.machine.php("8.2.13", 20220829, name="php8.2", package="php8.2-cli")
        self.machine.php_config(20220829, name="php-config.later")
        self.machine.stub("sudo", '[ "$1" = -n ] || exit 1\nshift\nexec "$@"')
        self.machine.stub(
            "apt-get",
            f"case \"$*\" in *install*) cat {self.machine.policy} >{self.machine.policy}.seen\n"
            f"  [ ! -e {self.machine.bin}/php-config.later ] ||\n"
            f"    mv {self.machine.bin}/php-config.later {self.machine.bin}/php-config8.2 ;; esac",
        )
        result = self.machine.setup("test", PYTHON=shutil.which("true"))
        # The headers are there afterwards, the rest of what `test` needs is not: the second look says so.
        self.assertEqual(2, result.returncode)
        [still] = [line for line in result.stderr.splitlines() if "Installed, but still not found" in line]
        self.assertIn("php8.2-fpm", still)
        self.assertNotIn("php8.2-dev", still)
        installs = [call for call in self.machine.calls("apt-get") if " install " in call]
        self.assertIn("php8.2-dev", installs[0])
        self.assertTrue(all(call.startswith("sudo -n ") for call in self.machine.calls("sudo")))
        self.assertIn("exit 101", Path(f"{self.machine.policy}.seen").read_text())
        self.assertFalse(self.machine.policy.exists())

    def test_a_policy_of_the_machine_is_left_as_it_is(self) -> None:
        self.machine.policy.write_text("#!/bin/sh\nexit 0\n")
        self.machine.stub("id", "echo 0")
        self.machine.setup("test", PYTHON=shutil.which("true"))
        self.assertTrue(self.machine.calls("apt-get"))
        self.assertEqual("#!/bin/sh\nexit 0\n", self.machine.policy.read_text())

    def test_a_rust_that_is_too_old_and_cannot_be_replaced_is_said(self) -> None:
        self.machine.php("8.2.13", 20220829, package="php8.2-cli")
        self.machine.php_config(20220829)
        self.machine.rust("1.63.0")
        self.machine.stub("curl", "exit 6")
        result = self.machine.setup()
        self.assertEqual(2, result.returncode)
        self.assertIn("No Rust 1.88 or later at hand, and none could be fetched", result.stderr)
        self.assertEqual(1, len(self.machine.calls("curl")))


if __name__ == "__main__":
    unittest.main()
