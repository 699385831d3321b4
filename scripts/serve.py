#!/usr/bin/env python3
"""Serves one PHP script with many processes of PHP's built-in server behind one port, until a signal ends it.

    scripts/serve.py [--port 8080] [--workers 16] [-d SETTING=VALUE]... [SCRIPT]

PHP_CLI_SERVER_WORKERS shares a port between workers as well, but there a worker may accept one more connection just
before it turns to a request, and that connection waits until the request ends, however many workers are idle. With
streams that wait, calls would hang. Here each connection goes to a process that serves nothing else: the built-in
server ends the connection after each response, so a connection is one request.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHUNK = 65536


def free_ports(count: int) -> list[int]:
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


async def relay(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Passes bytes on as they come; returns at the end of the source, or when the sink takes no more."""
    try:
        while data := await source.read(CHUNK):
            sink.write(data)
            await sink.drain()
    except ConnectionError:
        pass


class Worker:
    """One PHP process that serves one connection at a time."""

    def __init__(self, port: int, command: list[str], identity: dict[str, object]) -> None:
        self.port = port
        self.command = command
        self.identity = identity
        self.start()

    def start(self) -> None:
        environment = {name: value for name, value in os.environ.items() if name != "PHP_CLI_SERVER_WORKERS"}
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, env=environment, **self.identity)

    async def idle(self) -> None:
        """Returns once the process serves nothing: only then does it close a connection that brings no request."""
        while self.process.poll() is None:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.write_eof()
                await reader.read()
                writer.close()
                return
            except ConnectionError:
                await asyncio.sleep(0.01)
        raise ChildProcessError(f"PHP process {self.process.pid} {describe(self.process.returncode)}")

    async def ready(self) -> None:
        """The same, and a process that died is replaced."""
        try:
            await self.idle()
        except ChildProcessError as error:
            print(f"serve: {error}", file=sys.stderr, flush=True)
            self.start()
            await self.idle()


def describe(status: int) -> str:
    return f"exited on signal {-status}" if status < 0 else f"exited with status {status}"


class Dispatcher:
    def __init__(self, workers: list[Worker]) -> None:
        self.idle: asyncio.Queue[Worker] = asyncio.Queue()
        for worker in workers:
            self.idle.put_nowait(worker)
        self.returning: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            # A connection that asks for nothing yet takes no process.
            if first := await reader.read(CHUNK):
                worker = await self.idle.get()
                if worker.process.poll() is not None:
                    await worker.ready()
                try:
                    await self.exchange(worker, first, reader, writer)
                finally:
                    task = asyncio.create_task(self.put_back(worker))
                    self.returning.add(task)
                    task.add_done_callback(self.returning.discard)
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def exchange(
        self, worker: Worker, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        php_reader, php_writer = await asyncio.open_connection("127.0.0.1", worker.port)
        php_writer.write(first)
        directions = [asyncio.create_task(relay(reader, php_writer)), asyncio.create_task(relay(php_reader, writer))]
        # Whichever side leaves first, the other one is to notice.
        await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        for direction in directions:
            direction.cancel()
        php_writer.close()

    async def put_back(self, worker: Worker) -> None:
        # After a client that left, PHP may still be at work.
        await worker.ready()
        self.idle.put_nowait(worker)


async def run(options: argparse.Namespace) -> int:
    identity: dict[str, object] = {}
    if options.user:
        account = pwd.getpwnam(options.user)
        identity = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    # Quiet (-q): the log holds what PHP has to say, not a line for each connection.
    command = [options.php, "-q", *(["-c", options.configuration] if options.configuration else [])]
    command += [word for setting in options.define for word in ("-d", setting)]
    command += ["-t", str(Path(options.script).parent)]
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)

    workers = [
        Worker(port, [*command, "-S", f"127.0.0.1:{port}", options.script], identity)
        for port in free_ports(options.workers)
    ]
    try:
        for worker in workers:
            await worker.idle()
        server = await asyncio.start_server(Dispatcher(workers).serve, "127.0.0.1", options.port, backlog=1024)
        port = server.sockets[0].getsockname()[1]
        print(f"MCP server (Streamable HTTP), {options.workers} workers: http://127.0.0.1:{port}/mcp", flush=True)
        await stopped.wait()
        server.close()
        return 0
    except (ChildProcessError, OSError) as error:
        print(f"serve: {error}", file=sys.stderr)
        return 1
    finally:
        for worker in workers:
            worker.process.kill()
            worker.process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description="Serves one PHP script with many processes of PHP's built-in server.")
    parser.add_argument("script", nargs="?", default=str(ROOT / "examples/server/public/index.php"))
    parser.add_argument("--port", type=int, default=8080, help="0 means any free one")
    parser.add_argument("--workers", type=int, default=16, help="processes; a stream that waits holds one")
    parser.add_argument("--php", default=os.environ.get("PHP") or shutil.which("php") or "php")
    parser.add_argument("--user", help="who PHP runs as, when root starts this")
    parser.add_argument("-c", dest="configuration", metavar="FILE", help="PHP's php.ini")
    parser.add_argument("-d", dest="define", metavar="SETTING=VALUE", action="append", default=[], help="a setting of PHP")
    return asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
