"""HTTP/1.1 on asyncio streams: the part of HTTP that an MCP client needs.

A connection serves one exchange at a time, and is reused only if the server allows it. The client never repeats a request:
the caller decides what to do about a failed one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

MAX_HEADER_BYTES = 64 * 1024


class HttpError(Exception):
    """The server closed the connection or sent a malformed reply."""


@dataclass
class Response:
    """The status and headers of a reply. The caller reads the body afterwards, whole or in chunks."""

    status: int
    headers: dict[str, str]
    connection: Connection = field(repr=False)

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yields the body in chunks as they arrive. The connection is free again after the last chunk."""
        reader = self.connection.reader
        try:
            if self.status in (204, 304):
                pass
            elif "chunked" in self.headers.get("transfer-encoding", ""):
                while size := int((await reader.readline()).split(b";")[0] or b"-1", 16):
                    if size < 0:
                        raise HttpError("the connection closed within the body")
                    yield await reader.readexactly(size)
                    await reader.readexactly(2)
                await reader.readline()
            elif "content-length" in self.headers:
                rest = int(self.headers["content-length"])
                while rest > 0:
                    chunk = await reader.read(min(rest, 65536))
                    if not chunk:
                        raise HttpError("the connection closed within the body")
                    rest -= len(chunk)
                    yield chunk
            else:
                self.connection.reusable = False
                while chunk := await reader.read(65536):
                    yield chunk
        except (asyncio.IncompleteReadError, ConnectionError, ValueError) as error:
            raise HttpError(f"the connection closed within the body: {error!r}") from error
        self.connection.release()

    async def body(self) -> bytes:
        """Returns the whole body."""
        return b"".join([chunk async for chunk in self.chunks()])

    async def events(self) -> AsyncIterator[str]:
        """Yields the data of each server-sent event as it arrives, and skips comments."""
        buffer = b""
        async for chunk in self.chunks():
            buffer += chunk.replace(b"\r\n", b"\n")
            while b"\n\n" in buffer:
                event, buffer = buffer.split(b"\n\n", 1)
                data = [line[5:].lstrip() for line in event.split(b"\n") if line.startswith(b"data:")]
                if data:
                    yield b"\n".join(data).decode()


class Connection:
    """One connection to the server."""

    def __init__(self, pool: HttpClient, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.pool = pool
        self.reader = reader
        self.writer = writer
        self.reusable = True

    async def head(self) -> Response:
        """Reads the status and headers of the reply."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise HttpError(f"the connection closed before the reply: {error!r}") from error
        status_line, *lines = head.decode("latin-1").split("\r\n")
        headers = dict((name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines if line))
        if headers.get("connection", "").lower() == "close":
            self.reusable = False
        return Response(int(status_line.split(" ", 2)[1]), headers, self)

    def release(self) -> None:
        if self.reusable:
            self.pool.idle.append(self)
        else:
            self.close()

    def close(self) -> None:
        self.writer.close()


class HttpClient:
    """A pool of connections to one URL."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError(f"not an http:// URL: {url!r}")
        self.url = url
        self.host = parts.hostname
        self.port = parts.port or 80
        self.path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self.idle: list[Connection] = []

    async def request(self, method: str, headers: dict[str, str], body: bytes = b"") -> Response:
        """Sends one request. The caller must read the body of the reply, or discard() the reply."""
        lines = [f"{method} {self.path} HTTP/1.1", f"Host: {self.host}:{self.port}", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        connection = await self._connection()
        try:
            connection.writer.write("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)
            return await connection.head()
        except BaseException:
            connection.close()
            raise

    @staticmethod
    def discard(response: Response) -> None:
        """Discards a reply that was not read completely."""
        response.connection.close()

    def close(self) -> None:
        """Closes the idle connections."""
        while self.idle:
            self.idle.pop().close()

    async def _connection(self) -> Connection:
        while self.idle:
            connection = self.idle.pop()
            if not connection.reader.at_eof() and not connection.writer.is_closing():
                return connection
            connection.close()
        try:
            return Connection(self, *await asyncio.open_connection(self.host, self.port, limit=MAX_HEADER_BYTES))
        except OSError as error:
            raise HttpError(f"cannot connect to {self.host}:{self.port}: {error}") from error
