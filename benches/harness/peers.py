"""Who is measured, and the processes that do it.

A worker is a program that says `ready`, and then answers each line `run …` with one line of JSON. Each has a directory of its
own, in shared memory where there is some, and if it needs one a Redis of its own on a Unix socket.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
NATIVE = ROOT / "target" / f"php-{os.environ.get('PHP_ABI')}" / "release" / "mcp-state-bench"
PHP = os.environ.get("PHP", "php")
REDIS = os.environ.get("REDIS_SERVER") or "redis-server"
DEADLINE = 30.0  # seconds for anything to start

# Limits that the cases would meet.
OPTIONS = "max_sessions=1000000&max_store_bytes=4G&max_attribute_bytes=8M"
# The same with a map that takes all its space, 1 GB.
WRITE_MAP = "write_map=1&max_sessions=1000000&max_store_bytes=256M&max_attribute_bytes=8M"


@dataclass(frozen=True)
class Peer:
    """What keeps the sessions. `place` says what it needs: a `dsn` or `dsn-write-map`, a `directory`, a `redis`, or a `redis-dsn`."""

    name: str
    place: str = "directory"
    native: bool = False
    modules: tuple[str, ...] = ()  # of PHP
    ini: tuple[str, ...] = ()

    def missing(self) -> str | None:
        """Why it cannot be measured on this machine; None when it can."""
        if self.place.startswith("redis") and not shutil.which(REDIS):
            return "redis-server is not installed"
        if self.native:
            return None if NATIVE.exists() else f"{NATIVE.name} is not built"
        needed = [f'extension_loaded("{module}")' for module in ("pcntl", *self.modules)]
        done = subprocess.run([*self.php(), "-r", f"exit({' && '.join(needed)} ? 0 : 3);"], capture_output=True, text=True)
        if done.returncode == 3:
            return f"{PHP} has not all of the modules pcntl, {', '.join(self.modules)}"
        return (done.stderr or done.stdout).strip() or None

    def php(self) -> list[str]:
        settings = ["opcache.enable_cli=1", "apc.enable_cli=1", "apc.shm_size=512M", "memory_limit=-1", *self.ini]
        return [PHP, *(word for setting in settings for word in ("-d", setting))]

    def command(self, program: str, *arguments: object) -> list[str]:
        """The command line of this peer's worker; `program` is round or wake."""
        words = [self.name, *map(str, arguments)]
        if self.native:
            return [str(NATIVE), program, *words]
        return [*self.php(), str(ROOT / f"benches/php/{program}.php"), *words]


EXTENSION = (f"extension={BUILD / 'mcp_state.so'}",)
PEERS = {
    peer.name: peer
    for peer in [
        Peer("ours-extension", "dsn", modules=("mcp_state",), ini=EXTENSION),
        Peer("ours-write-map", "dsn-write-map", modules=("mcp_state",), ini=EXTENSION),
        Peer("ours-ffi", "dsn", modules=("FFI",), ini=("ffi.enable=1",)),
        Peer("ours-engine", "dsn", native=True),
        Peer("ours-redis", "redis-dsn", modules=("mcp_state",), ini=EXTENSION),
        Peer("file-blob"),
        Peer("file-blob-flock"),
        Peer("apcu-blob", modules=("apcu",)),
        Peer("apcu-blob-flock", modules=("apcu",)),
        Peer("redis-blob", "redis", modules=("redis",)),
        Peer("redis-blob-flock", "redis", modules=("redis",)),
        Peer("sysv-shm", modules=("sysvshm", "sysvsem")),
        Peer("sqlite", modules=("pdo_sqlite",)),
        Peer("redis-lua", "redis", modules=("redis",)),
        Peer("bare-lmdb", native=True),
        Peer("bare-write-map", native=True),
        Peer("bare-copy", native=True),
        Peer("poll-100ms"),
        Peer("poll-10ms"),
        Peer("redis-blpop", "redis", modules=("redis",)),
        Peer("eventfd", native=True),
        Peer("futex", native=True),
    ]
}


@contextlib.contextmanager
def directory() -> Iterator[Path]:
    """A directory that is gone afterwards. Where the sessions are kept is memory for every peer, if the machine allows."""
    memory = Path("/dev/shm")
    parent = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    path = Path(tempfile.mkdtemp(prefix="mcp-state-bench-", dir=parent))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def redis(place: Path) -> Iterator[Path]:
    """A Redis that keeps nothing on disk; its socket."""
    socket = place / "redis.sock"
    command = [REDIS, "--port", "0", "--unixsocket", str(socket), "--save", "", "--appendonly", "no", "--dir", str(place)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + DEADLINE
        while not socket.exists():
            if server.poll() is not None or time.monotonic() > end:
                raise RuntimeError("redis-server did not start")
            time.sleep(0.005)
        yield socket
    finally:
        server.kill()
        server.wait()


@contextlib.contextmanager
def place(peer: Peer, dsn: str | None) -> Iterator[str]:
    """Where the peer keeps its sessions, new and empty. `dsn` replaces ours, `{directory}` in it standing for one."""
    with directory() as path:
        if peer.place == "redis":
            with redis(path) as socket:
                yield str(socket)
        elif peer.place == "redis-dsn":
            with redis(path) as socket:
                yield f"redis+unix://{socket}?max_sessions=1000000&max_attribute_bytes=8M"
        elif peer.place == "dsn-write-map":
            yield f"file://{path}/store?durability=none&{WRITE_MAP}"
        elif peer.place == "dsn":
            yield (dsn or f"file://{{directory}}/store?durability=none&{OPTIONS}").replace("{directory}", str(path))
        else:
            yield str(path)


@dataclass
class Worker:
    """A running worker."""

    command: list[str]
    place: str
    process: subprocess.Popen[str] = field(init=False)

    def __enter__(self) -> Worker:
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *error: object) -> None:
        # At the end of its input it ends, and so do its children.
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def line(self) -> str:
        line = self.process.stdout.readline().strip()
        if not line:
            raise RuntimeError(f"a worker ended early: {' '.join(self.command)}")
        return line

    def run(self, *words: object) -> list[dict]:
        """Sends one line and returns what the worker's processes report."""
        print("run", *words, file=self.process.stdin, flush=True)
        return json.loads(self.line())


@contextlib.contextmanager
def workers(wanted: list[tuple[Peer, str, tuple[object, ...]]], dsn: str | None) -> Iterator[list[Worker]]:
    """A worker for each peer, program and arguments, all of them made ready."""
    with contextlib.ExitStack() as stack:
        started = []
        for peer, program, arguments in wanted:
            where = stack.enter_context(place(peer, dsn))
            started.append(stack.enter_context(Worker(peer.command(program, where, *arguments), where)))
        for worker in started:
            if (line := worker.line()) != "ready":
                raise RuntimeError(f"{' '.join(worker.command)} said {line!r}")
        yield started


def allocated(peer: Peer, worker: Worker) -> int | None:
    """Bytes that the peer's sessions take: of the file system, or of Redis; None for APCu, which says it to PHP alone."""
    if peer.place.startswith("redis"):
        path = worker.place.removeprefix("redis+unix://").split("?")[0]
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(DEADLINE)
            connection.connect(path)
            connection.sendall(b"INFO memory\r\n")
            found = re.search(rb"used_memory:(\d+)", connection.recv(65536))
        return int(found[1]) if found else None
    if peer.name.startswith("apcu") or "://" in worker.place and not worker.place.startswith("file://"):
        return None
    path = Path(worker.place.removeprefix("file://").split("?")[0])
    return sum(file.stat().st_blocks * 512 for file in path.rglob("*"))
