#!/usr/bin/env python3
"""A server under nginx and php-fpm for minutes or hours of everything that clients do, while its workers come and go.

    make soak MINUTES=10                        in a store of its own in shared memory
    make soak MINUTES=60 SEED=7 DSN=shm://soak
    tests/soak/run.py --help

Two pools of php-fpm serve one store. The *recycled* one replaces its workers after a few hundred requests, is reloaded
gracefully again and again, and has workers killed with SIGKILL at random moments. In the *steady* one each worker lives for the
whole run, so that a leak adds up. load.py says what the users do and when an answer is wrong; levels.py, what it is to level
off; samples.py, what is looked at. At the end everybody leaves: sessions, owners and pending requests must be gone, and
nothing in the store may contradict itself.

Written to build/soak: figures.txt, figures.json, soak.svg. The exit status is 1 when anything was wrong or grows.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import pwd
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
for path in ("examples/client", "tests/system", "tests/soak"):
    if str(ROOT / path) not in sys.path:
        sys.path.insert(0, str(ROOT / path))

from lib.servers import DEADLINE, SETUP, Nginx, PhpFpm, unprivileged, wait_until  # noqa: E402
from load import Ledger, Load, now  # noqa: E402
from report import Result  # noqa: E402
from samples import CommandFailed, Sample, StoreProbe, sample  # noqa: E402
from scenarios import process_has_ended  # noqa: E402

APP = ROOT / "tests/scenarios/server/index.php"
LEASE_MS = 3_000
"""Shorter than any TTL here: an owner whose worker was killed keeps its session for so long."""
RING = 256
"""Messages that the store keeps of a topic: few, so that the bus is full soon."""
FINISH = 120.0
"""Seconds that users may take to finish what they are doing."""


@dataclass
class Settings:
    """How a soak is run; times in seconds."""

    seconds: float
    seed: int = 1
    dsn: str = ""
    """The store; empty: one of its own, which is removed afterwards."""
    users: int = 12
    workers: int = 8
    """Of each pool."""
    max_requests: int = 200
    kill_every: float = 4.0
    """The mean: kills come at random moments."""
    reload_every: float = 60.0
    sample_every: float = 2.0
    ttl: float = 20.0
    """For how long a session lives unused."""
    ring: int = RING
    mode: str = "mcp-state"
    """How the server keeps its sessions; `blob`, as one document that is written whole, shows what the checks see."""


@contextlib.contextmanager
def store(settings: Settings) -> Iterator[str]:
    """The store's DSN. Its own store lies in shared memory, where there is such a place, and belongs to the server's user."""
    if settings.dsn:
        yield settings.dsn
        return
    with directory() as path:
        yield f"file://{path}/store?durability=none&lease_ms={LEASE_MS}&max_topic_messages={RING}"


@contextlib.contextmanager
def directory() -> Iterator[Path]:
    """A directory in shared memory that belongs to the server's user."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    path = Path(tempfile.mkdtemp(prefix="mcp-state-soak-", dir=memory))
    try:
        if user := unprivileged():
            account = pwd.getpwnam(user)
            os.chown(path, account.pw_uid, account.pw_gid)
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


class Soak:
    """A run: servers, users, trouble and samples."""

    def __init__(self, settings: Settings, command: Path) -> None:
        """`command`: the command line `mcp-state`."""
        self.settings = settings
        self.command = command
        self.ledger = Ledger()
        self.samples: list[Sample] = []
        self.unseen = ""
        """Why the store itself is not looked at."""

    def run(self) -> Result:
        settings = self.settings
        with contextlib.ExitStack() as stack:
            dsn = stack.enter_context(store(settings))
            blobs = stack.enter_context(directory()) / "blobs"
            env = {
                "MCP_STATE_DSN": dsn,
                "MCP_STATE_MODE": settings.mode,
                "MCP_STATE_BLOBS": str(blobs),
                "MCP_KEEPALIVE": "0.5",
            }
            pools = {"workers": settings.workers, "env": env}
            self.recycled = stack.enter_context(PhpFpm(APP, max_requests=settings.max_requests, **pools))
            self.steady = stack.enter_context(PhpFpm(APP, **pools))
            nginx = stack.enter_context(Nginx(self.recycled, self.steady))
            self.probe = StoreProbe(self.command, dsn, unprivileged())
            self.load = Load(
                nginx.url + "/mcp",
                self.ledger,
                seed=settings.seed,
                users=settings.users,
                workers=2 * settings.workers,
                ttl=settings.ttl,
                ring=settings.ring,
            )
            first = self.steady.workers()
            self.started = now()
            asyncio.run(self._run())
            seconds = now() - self.started
            if self.steady.workers() != first:
                self.ledger.wrong("died", "a worker that nobody killed is another one at the end")
            after = self._after()
            for line in (self.recycled.log() + self.steady.log()).splitlines():
                if re.search(r"PHP (Warning|Notice|Deprecated|Fatal error|Parse error)|McpState\\Exception", line):
                    self.ledger.wrong("logged", line)
        self.ledger.settle()
        ledger = self.ledger
        return Result(
            title=f"mcp-state under php-fpm: {settings.users} users, 2 x {settings.workers} workers",
            settings=vars(settings) | {"dsn": dsn.split("?")[0] if settings.dsn else "shared memory of its own"},
            seconds=seconds,
            samples=self.samples,
            done=dict(ledger.done),
            noted=dict(ledger.noted),
            errors=dict(ledger.errors),
            remarks=ledger.remarks,
            kills=[before - self.started for before, _ in ledger.kills],
            reloads=[before - self.started for before, _ in ledger.reloads],
            waits=quantiles(ledger.waits),
            after=after,
        )

    async def _run(self) -> None:
        users = asyncio.create_task(self.load.run())
        others = [asyncio.create_task(task) for task in (self._kill(), self._reload(), self._sample())]
        done, _ = await asyncio.wait({users, *others}, timeout=self.settings.seconds, return_when=asyncio.FIRST_EXCEPTION)
        self.load.stopping.set()
        try:
            for task in done:
                task.result()
            finished, _ = await asyncio.wait({users, others[1]}, timeout=FINISH)
            for task in finished:
                task.result()
            if len(finished) < 2:
                self.ledger.wrong("no answer", f"users or a reload were not done {FINISH:g} s after the end")
        finally:
            for task in (users, *others):
                task.cancel()
            await asyncio.gather(users, *others, return_exceptions=True)

    async def _until(self, seconds: float) -> bool:
        """Waits; false when the run is over."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.load.stopping.wait(), seconds)
        return not self.load.stopping.is_set()

    async def _kill(self) -> None:
        rng = random.Random(f"{self.settings.seed} kills")
        while await self._until(rng.expovariate(1 / self.settings.kill_every)):
            workers = self.recycled.workers()
            if not workers:
                continue
            # Every other one is in the middle of a stream.
            streaming = sorted(self.load.streaming() & set(workers))
            pid, before = rng.choice(streaming if streaming and rng.random() < 0.5 else workers), now()
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                # Until it has died it can still accept a connection.
                await process_has_ended(pid, DEADLINE)
                self.ledger.kills.append((before, now()))

    async def _reload(self) -> None:
        while await self._until(self.settings.reload_every):
            old, before = set(self.recycled.workers()), now()
            os.kill(self.recycled.pid, signal.SIGUSR2)
            while old & set(await asyncio.to_thread(self.recycled.workers)):
                if now() - before > DEADLINE:
                    self.ledger.wrong("reload", f"old workers are still there after {DEADLINE:g} s")
                    break
                await asyncio.sleep(0.05)
            self.ledger.reloads.append((before, now()))

    async def _sample(self) -> None:
        while True:
            self.samples.append(await asyncio.to_thread(self._look))
            if not await self._until(self.settings.sample_every):
                return

    def _look(self) -> Sample:
        masters = [self.recycled.pid, self.steady.pid]
        processes = (self.started, self.steady.workers(), self.recycled.workers(), masters)
        if not self.unseen:
            try:
                return sample(*processes, self.probe)
            except CommandFailed as failure:
                if any("sessions" in earlier for earlier in self.samples):
                    self.ledger.wrong("command line", str(failure))
                elif len(self.samples) >= 2:
                    # At first the store may not have been made yet.
                    self.unseen = str(failure)
                    print(f"the store itself is not sampled: {failure}", flush=True)
        return sample(*processes, None)

    def _after(self) -> dict[str, object]:
        """What is left when everybody has gone: nothing but the bus and keys that were used."""
        if self.unseen:
            return {"not looked at": self.unseen}
        left: dict[str, object] = {}

        def is_empty() -> bool:
            self.probe.collect()
            stats = self.probe.stats()
            left.clear()
            left.update({"sessions": stats["sessions"]} | stats["totals"], used_bytes=stats["used_bytes"])
            return not any(value for name, value in left.items() if name != "used_bytes")

        try:
            wait_until(is_empty, "the store is empty", self.settings.ttl + 40)
        except TimeoutError:
            self.ledger.wrong("left over", f"{left}")
        contradictions = self.probe.contradictions()
        for contradiction in contradictions:
            self.ledger.wrong("contradiction", contradiction)
        return left | {"contradictions": len(contradictions)}


def quantiles(waits: list[float]) -> dict[str, float]:
    """Milliseconds."""
    waits = sorted(waits)
    last = len(waits) - 1
    return {name: 1000 * waits[round(share * last)] for name, share in (("p50", 0.5), ("p99", 0.99), ("most", 1.0)) if waits}


def command_line() -> Path:
    """The command: MCP_STATE_CLI, or a debug build of what is checked out."""
    if given := os.environ.get("MCP_STATE_CLI"):
        return Path(given)
    subprocess.run([str(ROOT / "scripts/cargo"), "build", "--quiet", "--package", "mcp-state-cli"], check=True)
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target" / f"php-{SETUP['PHP_ABI']}"))
    return Path(target) / "debug" / "mcp-state"


def write(result: Result, folder: Path) -> None:
    """The three files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "figures.txt").write_text(result.to_text())
    (folder / "figures.json").write_text(json.dumps(result.to_json(), indent=1) + "\n")
    (folder / "soak.svg").write_text(result.to_svg())


def main() -> int:
    parser = argparse.ArgumentParser(description="Soaks a server under nginx and php-fpm.")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1, help="of what users do and when workers are killed")
    parser.add_argument("--dsn", default="", help="the store; by default one of its own in shared memory")
    parser.add_argument("--users", type=int, default=Settings.users)
    parser.add_argument("--workers", type=int, default=Settings.workers, help="of each of the two pools")
    parser.add_argument("--max-requests", type=int, default=Settings.max_requests, help="after which a worker is recycled")
    parser.add_argument("--kill-every", type=float, default=Settings.kill_every, metavar="SECONDS", help="on average")
    parser.add_argument("--reload-every", type=float, default=Settings.reload_every, metavar="SECONDS")
    parser.add_argument("--ttl", type=float, default=Settings.ttl, metavar="SECONDS", help="of a session that nobody uses")
    parser.add_argument(
        "--ring", type=int, help=f"messages that the store keeps of a topic (max_topic_messages); its own: {RING}"
    )
    parser.add_argument("--mode", choices=["mcp-state", "blob"], default=Settings.mode, help="how the server keeps sessions")
    parser.add_argument("--out", type=Path, default=ROOT / "build/soak")
    options = parser.parse_args()
    settings = Settings(
        seconds=options.minutes * 60,
        seed=options.seed,
        dsn=options.dsn,
        users=options.users,
        workers=options.workers,
        max_requests=options.max_requests,
        kill_every=options.kill_every,
        reload_every=options.reload_every,
        sample_every=max(1.0, min(10.0, options.minutes * 60 / 400)),
        ttl=options.ttl,
        ring=options.ring or (4096 if options.dsn else RING),
        mode=options.mode,
    )
    result = Soak(settings, command_line()).run()
    write(result, options.out)
    print(result.to_text(), end="")
    return 0 if result.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
