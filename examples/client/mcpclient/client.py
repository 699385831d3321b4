"""An MCP client that reports exactly the reply to each call, and the stream on which it arrived.

The client records each message with its HTTP exchange, because the response to a request must be in the reply to the same
POST. It accepts questions of the server (elicitations) on any stream, like every client, and records the stream.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from .http import HttpClient, HttpError, Response

PROTOCOL_VERSION = "2025-11-25"
Message = dict[str, Any]
Id = int | str


@dataclass
class Reply:
    """The reply to one POST."""

    status: int = 0
    """The HTTP status; 0 if there was no reply."""
    headers: dict[str, str] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    """The JSON-RPC messages of the reply, in order."""
    is_array: bool = False
    timed_out: bool = False
    """The client gave up waiting."""
    broken: str = ""
    """The reason if the connection ended early."""
    seconds: float = 0.0
    finished: float = 0.0
    """The `time.perf_counter()` at the end of the reply."""

    def response(self, id: Id) -> Message | None:
        """Returns the first response in this reply with this $id, even if it answers another request."""
        return next((m for m in self.messages if "method" not in m and m.get("id") == id), None)

    def responses(self) -> list[Message]:
        return [m for m in self.messages if "method" not in m]

    def notifications(self, method: str) -> list[Message]:
        return [m for m in self.messages if m.get("method") == method and "id" not in m]


@dataclass
class Question:
    """A request of the server that the client has yet to answer."""

    id: Id
    text: str
    call: Id | None
    """The id of the call on whose stream the question arrived; None if it arrived in any other reply."""
    client: McpClient = field(repr=False)
    answered: float = 0.0
    """The `time.perf_counter()` at which the client sent the answer."""

    async def answer(self, text: str | None = None, *, id: object = None) -> Reply:
        """Answers with $text, by default the requested word. A test may pass another $id."""
        self.answered = time.perf_counter()
        result = {"action": "accept", "content": {"answer": self.text if text is None else text}}
        return await self.client.post({"jsonrpc": "2.0", "id": self.id if id is None else id, "result": result})


class McpClient:
    """One MCP session."""

    def __init__(self, url: str, *, timeout: float = 10.0, headers: dict[str, str] | None = None) -> None:
        """Every exchange times out after $timeout seconds. Every request has the $headers."""
        self.http = HttpClient(url)
        self.timeout = timeout
        self.session_id: str | None = None
        self.protocol_version: str | None = None
        self.questions: list[Question] = []
        """All questions so far, in order of arrival."""
        self.replies: dict[Id, Reply] = {}
        """The reply to each call so far, by id. If an id was reused, the reply to the latest call."""
        self._headers = headers or {}
        self._ids = itertools.count(1)
        self._asked: dict[str, asyncio.Future[Question]] = defaultdict(asyncio.get_running_loop().create_future)

    async def __aenter__(self) -> McpClient:
        await self.initialize()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.http.close()

    async def initialize(self) -> Reply:
        """Creates the session; raises HttpError if the server refuses."""
        id = next(self._ids)
        params = {
            "protocolVersion": PROTOCOL_VERSION,
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "mcpclient", "version": "0.1.0"},
        }
        reply = await self.post({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": params})
        response = reply.response(id)
        if reply.status != 200 or response is None or "result" not in response:
            raise HttpError(f"initialize failed: HTTP {reply.status} {reply.broken or reply.messages}")
        self.session_id = reply.headers.get("mcp-session-id")
        self.protocol_version = response["result"]["protocolVersion"]
        await self.notify("notifications/initialized")
        return reply

    def add_headers(self, headers: dict[str, str]) -> None:
        """Adds $headers to every later request."""
        self._headers = self._headers | headers

    def next_id(self) -> int:
        return next(self._ids)

    async def request(
        self,
        method: str,
        params: Message | None = None,
        *,
        id: Id | None = None,
        timeout: float | None = None,
    ) -> tuple[Id, Reply]:
        """Sends a request, and returns its id and the reply."""
        id = next(self._ids) if id is None else id
        return id, await self.post({"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}, timeout)

    async def call(
        self,
        tool: str,
        arguments: Message,
        *,
        id: Id | None = None,
        timeout: float | None = None,
        progress: bool = False,
    ) -> tuple[Id, Reply]:
        """Calls $tool. With $progress, asks for progress under a token made from the id."""
        id = next(self._ids) if id is None else id
        params: Message = {"name": tool, "arguments": arguments}
        if progress:
            params["_meta"] = {"progressToken": f"progress-{id}"}
        return await self.request("tools/call", params, id=id, timeout=timeout)

    async def notify(self, method: str, params: Message | None = None) -> Reply:
        return await self.post({"jsonrpc": "2.0", "method": method, "params": params or {}})

    async def delete(self) -> int:
        """Ends the session, and returns the HTTP status."""
        response = await asyncio.wait_for(self.http.request("DELETE", self._request_headers()), self.timeout)
        await asyncio.wait_for(response.body(), self.timeout)
        return response.status

    async def question(self, text: str, timeout: float | None = None) -> Question:
        """Waits until the server asks for $text; raises asyncio.TimeoutError if it does not."""
        return await asyncio.wait_for(asyncio.shield(self._asked[text]), self.timeout if timeout is None else timeout)

    async def post(self, message: Message | list[Message], timeout: float | None = None) -> Reply:
        """Posts $message and reads the whole reply. Server errors never raise; the Reply reports them."""
        reply = Reply()
        call = message.get("id") if isinstance(message, dict) and "method" in message else None
        if call is not None:
            self.replies[call] = reply
        started = time.perf_counter()
        try:
            await asyncio.wait_for(self._exchange(message, call, reply), self.timeout if timeout is None else timeout)
        except asyncio.TimeoutError:
            reply.timed_out = True
        except (HttpError, ValueError) as error:
            reply.broken = str(error)
        reply.finished = time.perf_counter()
        reply.seconds = reply.finished - started
        return reply

    async def _exchange(self, message: Message | list[Message], call: Id | None, reply: Reply) -> None:
        body = json.dumps(message, separators=(",", ":")).encode()
        response: Response | None = await self.http.request("POST", self._request_headers(), body)
        assert response is not None
        try:
            reply.status, reply.headers = response.status, response.headers
            content_type = response.headers.get("content-type", "")
            if content_type.startswith("text/event-stream"):
                async for data in response.events():
                    self._receive(json.loads(data), call, reply)
            else:
                body = await response.body()
                content = json.loads(body) if body and content_type.startswith("application/json") else None
                reply.is_array = isinstance(content, list)
                for part in content if isinstance(content, list) else [content] if isinstance(content, dict) else []:
                    self._receive(part, call, reply)
            response = None
        finally:
            if response is not None:
                self.http.discard(response)

    def _receive(self, message: Message, call: Id | None, reply: Reply) -> None:
        reply.messages.append(message)
        if message.get("method") == "elicitation/create":
            question = Question(message["id"], message["params"]["message"], call, self)
            self.questions.append(question)
            if not self._asked[question.text].done():
                self._asked[question.text].set_result(question)

    def _request_headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self.session_id is not None:
            headers["Mcp-Session-Id"] = self.session_id
        if self.protocol_version is not None:
            headers["Mcp-Protocol-Version"] = self.protocol_version
        return headers | self._headers
