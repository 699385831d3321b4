"""What the guides in docs/guides/ tell people to copy is accepted by the programs it is for, and serves."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from lib.servers import ROOT, program

GUIDES = ROOT / "docs" / "guides"


def blocks(guide: str, language: str) -> list[str]:
    """The fenced blocks of a language, in order."""
    text = (GUIDES / guide).read_text()
    found = re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)
    if not found:
        raise AssertionError(f"{guide} has no block of {language}")
    return found


class Nginx(unittest.TestCase):
    def test_the_server_block_is_accepted(self) -> None:
        nginx = program("NGINX", "nginx")
        server, _ = blocks("nginx-php-fpm.md", "nginx")
        with tempfile.TemporaryDirectory() as directory:
            place = Path(directory)
            (place / "logs").mkdir()
            self.assertEqual(1, server.count("listen 80;"))
            server = server.replace("listen 80;", f"listen unix:{place}/web.sock;")
            (place / "fastcgi_params").write_text(Path("/etc/nginx/fastcgi_params").read_text())
            temporary = "".join(
                f"{kind}_temp_path {place}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
            )
            (place / "nginx.conf").write_text(
                f"pid {place}/nginx.pid;\nerror_log stderr;\nevents {{}}\nhttp {{\n{temporary}access_log off;\n{server}}}\n"
            )
            result = subprocess.run(
                [nginx, "-t", "-p", directory, "-e", "stderr", "-c", str(place / "nginx.conf")], capture_output=True, text=True
            )
        self.assertEqual(0, result.returncode, result.stderr)
        self.assertIn("test is successful", result.stderr)


class PhpFpm(unittest.TestCase):
    def check(self, pool: str, glob: str) -> subprocess.CompletedProcess[str]:
        fpm = program("PHP_FPM", "php-fpm")
        with tempfile.TemporaryDirectory() as directory:
            place = Path(directory)
            for path in ("/run/php/mcp.sock",):
                self.assertIn(path, pool)
                pool = pool.replace(path, f"{place}/mcp.sock")
            if os.geteuid() != 0:  # Only root may change the user, and FPM says so.
                pool = re.sub(r"^(user|group|listen\.owner|listen\.group) = .*\n", "", pool, flags=re.M)
            else:
                pool = pool.replace("www-data", "nobody").replace("group = nobody", f"group = {group_of_nobody()}")
            (place / "fpm.conf").write_text(f"{glob}\nerror_log = {place}/log\n{pool}")
            return subprocess.run([fpm, "-n", "-t", "-y", str(place / "fpm.conf")], capture_output=True, text=True)

    def test_the_pool_and_the_global_section_are_accepted(self) -> None:
        pool, glob, _ = blocks("nginx-php-fpm.md", "ini")
        result = self.check(pool, glob)
        self.assertEqual(0, result.returncode, result.stderr)
        self.assertIn("test is successful", result.stderr)

    def test_a_misspelt_setting_would_have_been_noticed(self) -> None:
        pool, glob, _ = blocks("nginx-php-fpm.md", "ini")
        self.assertNotEqual(0, self.check(pool.replace("pm.max_children", "pm.most_children"), glob).returncode)

    def test_there_are_more_processes_than_may_wait(self) -> None:
        """`maxWaiting` of the same guide leaves processes for the answers."""
        text = (GUIDES / "nginx-php-fpm.md").read_text()
        processes = int(re.search(r"pm\.max_children = (\d+)", text)[1])
        self.assertLess(int(re.search(r"maxWaiting: (\d+)", text)[1]), processes)

    def test_streams_may_wait_longer_than_a_question(self) -> None:
        """The SDK's questions wait up to 120 seconds."""
        text = (GUIDES / "nginx-php-fpm.md").read_text()
        self.assertGreater(int(re.search(r"fastcgi_read_timeout (\d+)s;", text)[1]), 120)

    def test_a_reload_stops_everybody_for_seconds_and_a_hand_over_waits_for_every_question(self) -> None:
        reload, hand_over = re.findall(r"process_control_timeout = (\d+)", (GUIDES / "nginx-php-fpm.md").read_text())
        self.assertLess(int(reload), 30)
        self.assertGreater(int(hand_over), 120)


class Php(unittest.TestCase):
    def test_every_block_of_php_is_php(self) -> None:
        php = program("PHP", "php")
        checked = 0
        for guide in sorted(GUIDES.glob("*.md")):
            for code in re.findall(r"^```php\n(.*?)^```$", guide.read_text(), re.M | re.S):
                result = subprocess.run([php, "-n", "-l"], input=f"<?php\n{code}", capture_output=True, text=True)
                self.assertEqual(0, result.returncode, f"{guide.name}: {result.stdout}{result.stderr}\n{code}")
                checked += 1
        self.assertGreater(checked, 5)

    def test_classes_and_parameters_that_the_guides_name_exist(self) -> None:
        manager = (ROOT / "php/src/Sdk/SessionManager.php").read_text()
        for guide in sorted(GUIDES.glob("*.md")):
            text = guide.read_text()
            for name in set(re.findall(r"\bMcpState(?:\\\w+)+", text)):
                relative = name.removeprefix("McpState\\").replace("\\", "/") + ".php"
                places = [ROOT / "php/src" / relative, ROOT / "php/symfony/src" / relative.removeprefix("Symfony/")]
                self.assertTrue(any(place.exists() for place in places), f"{guide.name} names {name}")
            for call in re.findall(r"SessionManager::open\((.*?)\)[,;]", text):
                for parameter in re.findall(r"\b(\w+): ", call):
                    self.assertIn(f"${parameter} =", manager, f"{guide.name} passes {parameter}")


class Links(unittest.TestCase):
    def test_links_lead_somewhere(self) -> None:
        for guide in sorted(GUIDES.glob("*.md")):
            for target in re.findall(r"\]\(([^)#:]+)\)", guide.read_text()):
                self.assertTrue((GUIDES / target).exists(), f"{guide.name} links to {target}")

    def test_every_guide_is_in_the_index(self) -> None:
        index = (GUIDES / "README.md").read_text()
        for guide in GUIDES.glob("*.md"):
            if guide.name != "README.md":
                self.assertIn(f"({guide.name})", index)


def group_of_nobody() -> str:
    import grp
    import pwd

    return grp.getgrgid(pwd.getpwnam("nobody").pw_gid).gr_name


if __name__ == "__main__":
    unittest.main()
