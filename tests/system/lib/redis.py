"""Private Redis servers: on a Unix socket in a directory of their own, gone when their `with` block or its process ends.

$REDIS_SERVER names the program, any Redis since 6.2 or Valkey; else it is what scripts/setup found.

    with Redis("--maxmemory", "20mb") as redis:
        PhpFpm(app, env={"MCP_STATE_DSN": redis.dsn()})
"""

from __future__ import annotations

import os
import signal
import subprocess

from lib.servers import SETUP, Server, program


class Redis(Server):
    name = "redis"

    def __init__(self, *options: str) -> None:
        """options: as redis-server's command line has them; by default nothing is kept on disk."""
        super().__init__()
        self.options = options
        self.binary = os.environ.get("REDIS_SERVER") or SETUP.get("REDIS_SERVER") or program("REDIS_SERVER", "redis-server")

    @property
    def socket(self) -> str:
        return str(self.dir / "redis.sock")

    def dsn(self, options: str = "") -> str:
        return f"redis+unix://{self.socket}" + (f"?{options}" if options else "")

    def prepare(self) -> None:
        # Its own user makes the socket.
        self.dir.chmod(0o1777)

    def command(self) -> list[str]:
        place = ["--port", "0", "--unixsocket", self.socket, "--unixsocketperm", "777", "--dir", str(self.data)]
        return ["setpriv", "--pdeathsig", "KILL", self.binary, *place, "--save", "", *self.options]

    def is_ready(self) -> bool:
        # While it reads what is on its disk it answers with an error.
        return self.ask("PING") == "PONG"

    def ask(self, *words: str) -> str:
        """What it answers to a command."""
        return subprocess.run(["redis-cli", "-s", self.socket, *words], capture_output=True, text=True).stdout.strip()

    def kill(self) -> None:
        """kill -9: what it has not written to its disk is gone."""
        os.kill(self.pid, signal.SIGKILL)
        self.process.wait()
