"""One store for all: C, Python, PHP with the extension, PHP with FFI and the command line see the same sessions at the same
time, and a response that one delivers wakes a waiter in another.

Each side is a program that either asks (prints session and message, waits, prints the answer) or answers.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from lib.servers import EXTENSION, ROOT, program
from test_cli import build as command_line

LIBRARY = Path(os.environ.get("MCP_STATE_LIBRARY", ROOT / "build" / "libmcp_state.so"))
ANSWER = '{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"word":"caf\\u00e9"}}}'

PHP_ELICIT = r"""
[, $autoload, $do, $dsn] = $argv;
require $autoload;
$store = McpState\Store::open($dsn);
if ($do === 'ask') {
    $session = $store->createSession();
    $question = $session->attach()->sendRequest(['jsonrpc' => '2.0', 'method' => 'elicitation/create'], 60_000);
    echo $session->id, "\n", $question->owner->takeOutgoing()[0]->body, "\n";
    $claim = $question->await();
    echo $claim->payload, "\n";
    exit($claim->isAnswered() ? 0 : 1);
}
$delivery = $store->openSession($argv[4])->deliverResponse((int) $argv[5], $argv[6]);
echo $delivery->delivered ? 'delivered' : $delivery->reason->name, "\n";
"""


class OneStoreForAll(unittest.TestCase):
    directory: Path
    commands: dict[str, list[str]]

    @classmethod
    def setUpClass(cls) -> None:
        cls.directory = Path(tempfile.mkdtemp(prefix="mcp-state-c-"))
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        php = [program("PHP", "php"), "-d", "display_errors=stderr"]
        script = cls.directory / "elicit.php"
        script.write_text(f"<?php {PHP_ELICIT}")
        elicit = [str(script), str(ROOT / "php" / "autoload.php")]
        cls.commands = {
            "C": [str(cls.compile("elicit"))],
            "Python": [sys.executable, str(ROOT / "examples" / "python" / "elicit.py")],
            "PHP": [*php, "-d", f"extension={EXTENSION}", *elicit],
            "PHP with FFI": [*php, "-d", "ffi.enable=1", *elicit],
        }

    @classmethod
    def compile(cls, name: str, *options: str) -> Path:
        """The C example, with all warnings."""
        target = cls.directory / name
        command = ["cc", "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-g", *options, "-o", str(target)]
        command += [str(ROOT / "examples" / "c" / "elicit.c"), f"-I{ROOT / 'include'}"]
        command += [f"-L{LIBRARY.parent}", "-lmcp_state", f"-Wl,-rpath,{LIBRARY.parent}"]
        subprocess.run(command, check=True)
        return target

    def setUp(self) -> None:
        store = tempfile.mkdtemp(dir=self.directory)
        self.dsn = f"file://{store}/store?durability=none"
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(("PHP", "MCP_"))}
        self.env["MCP_STATE_LIBRARY"] = str(LIBRARY)

    def start(self, who: str, *arguments: str, **env: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*self.commands[who], *arguments], env=self.env | env, stdout=subprocess.PIPE, text=True
        )
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process: subprocess.Popen[str]) -> None:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()

    def ask(self, who: str, **env: str) -> tuple[subprocess.Popen[str], str, int]:
        """A program that waits for its answer, its session, and the request's id."""
        process = self.start(who, "ask", self.dsn, **env)
        assert process.stdout is not None
        session, message = process.stdout.readline().strip(), process.stdout.readline()
        return process, session, json.loads(message)["id"]

    def assert_answer_arrives(self, asks: str, answers: str) -> None:
        process, session, id = self.ask(asks)
        answering = self.start(answers, "answer", self.dsn, session, str(id), ANSWER)
        self.assertEqual("delivered\n", answering.communicate()[0])
        self.assertEqual(ANSWER + "\n", process.communicate()[0])
        self.assertEqual((0, 0), (process.returncode, answering.returncode))

    def test_c_waits_and_php_delivers(self) -> None:
        self.assert_answer_arrives("C", "PHP")

    def test_php_waits_and_python_delivers(self) -> None:
        self.assert_answer_arrives("PHP", "Python")

    def test_python_waits_and_c_delivers(self) -> None:
        self.assert_answer_arrives("Python", "C")

    def test_php_with_ffi_waits_and_php_with_the_extension_delivers(self) -> None:
        self.assert_answer_arrives("PHP with FFI", "PHP")

    def test_php_with_the_extension_waits_and_php_with_ffi_delivers(self) -> None:
        self.assert_answer_arrives("PHP", "PHP with FFI")

    def test_four_wait_at_once_and_each_gets_its_own_answer(self) -> None:
        asked = {who: self.ask(who) for who in self.commands}
        others = dict(zip(self.commands, [*list(self.commands)[1:], "C"]))
        for who, (_, session, id) in asked.items():
            said = self.start(others[who], "answer", self.dsn, session, str(id), f'"for {who}"').communicate()[0]
            self.assertEqual("delivered\n", said, f"{others[who]} answers {who}")
        for who, (process, _, _) in asked.items():
            self.assertEqual(f'"for {who}"\n', process.communicate()[0])

    def test_the_command_line_shows_who_waits_and_that_all_have_ended(self) -> None:
        command = [str(command_line()), "--store", self.dsn]

        def show(session: str) -> str:
            return subprocess.run([*command, "show", session], check=True, capture_output=True, text=True).stdout

        asked = {who: self.ask(who) for who in self.commands}
        for who, (process, session, id) in asked.items():
            shown = show(session)
            self.assertIn("elicitation/create", shown, who)
            self.assertIn(str(id), shown, who)
            self.start("Python", "answer", self.dsn, session, str(id), ANSWER).communicate()
            process.communicate()
            self.assertNotIn("elicitation/create", show(session), who)

    def test_a_second_answer_is_late_in_every_language(self) -> None:
        process, session, id = self.ask("C")
        self.start("Python", "answer", self.dsn, session, str(id), ANSWER).communicate()
        process.communicate()
        late = {who: self.start(who, "answer", self.dsn, session, str(id), ANSWER).communicate()[0] for who in self.commands}
        self.assertEqual({"finished"}, {text.strip().lower() for text in late.values()}, late)

    def test_a_bad_dsn_is_told_in_words(self) -> None:
        for who in ("C", "Python"):
            process = subprocess.run([*self.commands[who], "ask", "nonsense"], env=self.env, capture_output=True, text=True)
            self.assertIn('the dsn has no scheme', process.stderr, who)
            self.assertNotEqual(0, process.returncode)

    def test_the_c_program_touches_no_memory_but_its_own_and_leaks_none(self) -> None:
        probe = self.directory / "probe.c"
        probe.write_text("int main(void) { return 0; }\n")
        build = ["cc", "-fsanitize=address", "-o", str(probe.with_suffix("")), str(probe)]
        if subprocess.run(build, capture_output=True).returncode or subprocess.run([probe.with_suffix("")]).returncode:
            self.skipTest("cc builds nothing with AddressSanitizer here")
        self.commands["C, checked"] = [str(self.compile("checked", "-fsanitize=address,undefined"))]
        self.addCleanup(self.commands.pop, "C, checked")
        self.assert_answer_arrives("C, checked", "C, checked")

    def test_pkg_config_knows_the_library(self) -> None:
        if not shutil.which("pkg-config"):
            self.skipTest("no pkg-config")

        def pkg_config(*options: str) -> str:
            env = os.environ | {"PKG_CONFIG_PATH": str(LIBRARY.parent)}
            command = ["pkg-config", *options, "mcp_state"]
            return subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout.strip()

        version = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
        self.assertEqual(version and version[1], pkg_config("--modversion"))
        asked = pkg_config("--cflags", "--libs")
        self.assertIn("-lmcp_state", asked)
        folders = [Path(folder) for folder in re.findall(r"-[IL](\S+)", asked)]
        self.assertTrue(any((folder / "mcp_state.h").exists() for folder in folders), asked)
        self.assertTrue(any((folder / "libmcp_state.so").exists() for folder in folders), asked)

    def test_only_the_c_api_is_exported(self) -> None:
        names = subprocess.run(["nm", "-D", "--defined-only", str(LIBRARY)], check=True, capture_output=True, text=True).stdout
        exported = {line.split()[-1] for line in names.splitlines()}
        header = (ROOT / "include" / "mcp_state.h").read_text()
        declared = set(re.findall(r"\b(mcp_state_\w+)\(\w", header)) - {""}
        self.assertEqual(declared, exported)


if __name__ == "__main__":
    unittest.main()
