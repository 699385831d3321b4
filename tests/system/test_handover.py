"""The hand-over between two php-fpm masters, run from the lines of docs/guides/nginx-php-fpm.md: nothing is lost, nobody refused."""

from __future__ import annotations

import asyncio
import grp
import os
import pwd
import re
import signal
import subprocess
import sys
import unittest
from pathlib import Path

from lib.servers import DEADLINE, ROOT, Nginx, PhpFpm, accepts, children, program, wait_until
from test_guides import blocks

sys.path.insert(0, str(ROOT / "examples/client"))

from mcpclient import McpClient  # noqa: E402

GUIDE = "nginx-php-fpm.md"
APP = ROOT / "tests/scenarios/server/index.php"


class Masters(PhpFpm):
    """The two masters of the guide, of which one runs: the first is started here, the other one by the guide's script."""

    name = "handover"

    @property
    def address(self) -> str:
        return f"{self.dir}/run/mcp-blue.sock"

    def localized(self, text: str) -> str:
        """The guide's text with this server's places and programs in the place of the system's."""
        places = {"/etc/mcp": f"{self.dir}/etc", "/run/php": f"{self.dir}/run", "/var/log": str(self.dir)}
        for place, mine in places.items():
            text = text.replace(place, mine)
        return text

    def prepare(self) -> None:
        super().prepare()
        for name in ("etc", "run"):
            (self.dir / name).mkdir()
        pool, blue = next(b for b in blocks(GUIDE, "ini") if "[mcp]" in b), next(b for b in blocks(GUIDE, "ini") if "blue" in b)
        pool = re.sub(r"^listen = .*\n", "", pool, flags=re.M)
        if self.user:
            group = grp.getgrgid(pwd.getpwnam(self.user).pw_gid).gr_name
            pool = re.sub(r"^(user|listen\.owner) = .*$", rf"\1 = {self.user}", pool, flags=re.M)
            pool = re.sub(r"^(group|listen\.group) = .*$", rf"\1 = {group}", pool, flags=re.M)
        else:
            pool = re.sub(r"^(user|group|listen\.owner|listen\.group) = .*\n", "", pool, flags=re.M)
        # The store and the extension of this test come by the environment.
        (self.dir / "etc/pool.conf").write_text(f"{pool}\nclear_env = no\n")
        for colour in ("blue", "green"):
            (self.dir / f"etc/fpm-{colour}.conf").write_text(self.localized(blue).replace("blue", colour))
            upstream = re.search(r"`(upstream mcp \{.*?\})`", (ROOT / "docs/guides" / GUIDE).read_text())[1]
            (self.dir / f"etc/nginx-{colour}.conf").write_text(self.localized(upstream).replace("blue", colour) + "\n")
        (self.dir / "etc/nginx-live.conf").symlink_to("nginx-blue.conf")

    def command(self) -> list[str]:
        return [self.binary, "-F", "-c", str(self.dir / "php.ini"), "-y", f"{self.dir}/etc/fpm-blue.conf"]

    def is_ready(self) -> bool:
        return accepts(self.address)

    def hand_over(self, nginx: Switched) -> None:
        """Runs the guide's script."""
        script = self.localized(next(block for block in blocks(GUIDE, "sh") if "mcp-handover" in block))
        commands = {
            "php-fpm8.2 ": f"{self.binary} -c {self.dir}/php.ini ",
            "nginx -s reload": f"{' '.join(nginx.command())} -s reload",
        }
        for theirs, mine in commands.items():
            assert theirs in script, theirs
            script = script.replace(theirs, mine)
        done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, env=self._environment(), timeout=DEADLINE)
        assert done.returncode == 0, done.stdout + done.stderr

    def master(self, colour: str) -> int:
        return int((self.dir / f"run/mcp-{colour}.pid").read_text())

    def stop(self) -> None:
        # The second master is nobody's child.
        for file in (self.dir / "run").glob("*.pid"):
            try:
                pid = int(file.read_text())
                if f"{self.dir}/etc" in Path(f"/proc/{pid}/cmdline").read_text():
                    os.kill(pid, signal.SIGTERM)
                    wait_until(lambda: not os.path.exists(f"/proc/{pid}"), f"master {pid} has ended")
            except (OSError, ValueError):
                pass
        super().stop()


class Switched(Nginx):
    """nginx with the guide's `include` in the place of an upstream of its own."""

    def prepare(self) -> None:
        super().prepare()
        file = self.dir / "nginx.conf"
        (include,) = [block for block in blocks(GUIDE, "nginx") if "nginx-live.conf" in block]
        text = re.sub(r"    upstream php \{.*?\n    \}\n", lambda _: self.fastcgi.localized(include), file.read_text(), flags=re.S)
        file.write_text(text.replace("fastcgi_pass php;", "fastcgi_pass mcp;"))


class HandOver(unittest.IsolatedAsyncioTestCase):
    async def test_a_second_master_takes_over_under_an_open_question_and_nobody_notices(self) -> None:
        program("NGINX", "nginx")
        asyncio.get_running_loop().set_debug(False)
        with Masters(APP, env={"MCP_STATE_MODE": "mcp-state"}) as php, Switched(php) as nginx:
            blue = php.master("blue")
            async with McpClient(nginx.url + "/mcp", timeout=60) as client:
                asked = asyncio.create_task(client.call("ask", {"sentinel": "before", "timeout": 50}))
                question = await client.question("before")
                stop, replies = asyncio.Event(), []

                async def call(number: int) -> None:
                    async with McpClient(nginx.url + "/mcp", timeout=30) as other:
                        while not stop.is_set():
                            id, reply = await other.call("echo", {"sentinel": f"{number}"})
                            # At its reload nginx closes connections from which it has read no request; clients send those
                            # again. Whatever reaches php-fpm has a status.
                            if reply.status or "0 bytes read" not in reply.broken:
                                replies.append((f"{number}", id, reply))

                callers = [asyncio.create_task(call(number)) for number in range(3)]
                await asyncio.to_thread(php.hand_over, nginx)
                green = php.master("green")
                already = len(replies)
                while len(replies) < already + 20:
                    await asyncio.sleep(0.01)
                stop.set()
                await asyncio.gather(*callers)

                # The first master is still there, for one stream; all others were served all the time.
                self.assertFalse(asked.done())
                self.assertTrue(os.path.exists(f"/proc/{blue}"))
                served = set()
                for sentinel, id, reply in replies:
                    self.assertEqual((200, ""), (reply.status, reply.broken), sentinel)
                    self.assertIn(sentinel, str(reply.response(id)["result"]))
                    served.add(int(reply.headers["x-worker-pid"]))
                self.assertTrue(served & set(children(green)), "the second master has served")

                self.assertEqual(202, (await question.answer("after")).status)
                id, reply = await asked
                self.assertIn("after", str(reply.response(id)["result"]))
                # The same session goes on, with the next question.
                again = asyncio.create_task(client.call("ask", {"sentinel": "next", "timeout": 50}))
                await (await client.question("next")).answer("green")
                id, reply = await again
                self.assertIn("green", str(reply.response(id)["result"]))
            await asyncio.to_thread(php.process.wait, DEADLINE)
            self.assertFalse(os.path.exists(f"/proc/{blue}"), "the first master has ended with its last stream")


if __name__ == "__main__":
    unittest.main()
