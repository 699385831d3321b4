"""A hostile client of a real server (nginx, php-fpm, the example server): limits refuse it, and the others go on.

The floods of the engine are in tests/abuse.rs; here it is what a client sees: an HTTP status and a JSON-RPC error that names
the limit, from processes that go on serving.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import unittest

from lib.servers import ROOT, Nginx, PhpFpm

sys.path.insert(0, str(ROOT / "examples/client"))
from mcpclient import McpClient, Reply  # noqa: E402
from mcpclient.http import HttpClient, HttpError  # noqa: E402

SESSIONS, PENDING, MESSAGE, ATTRIBUTES = 20, 5, 4096, 32 * 1024
OPTIONS = {
    "max_sessions": SESSIONS,
    "max_pending": PENDING,
    "max_message_bytes": MESSAGE,
    "max_attribute_bytes": ATTRIBUTES,
}
DSN = "file://{data}/store?durability=none&" + "&".join(f"{name}={value}" for name, value in OPTIONS.items())
WORKERS = 2 * PENDING


class Floods(unittest.IsolatedAsyncioTestCase):
    """Each test has a server of its own; `neighbour` is another user's session, with a value in it."""

    def setUp(self) -> None:
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        app = ROOT / "examples/server/public/index.php"
        self.php = stack.enter_context(PhpFpm(app, workers=WORKERS, env={"MCP_STATE_DSN": DSN}))
        self.url = stack.enter_context(Nginx(self.php)).url + "/mcp"
        self.pids = set(self.php.workers())

    async def asyncSetUp(self) -> None:
        asyncio.get_running_loop().set_debug(False)
        self.neighbour = await self.client()
        await self.neighbour.call("remember", {"key": "mine", "value": "kept"})

    async def asyncTearDown(self) -> None:
        """No process died of it, and the neighbour still has what was its own and can ask and be answered."""
        self.assertEqual(self.pids, set(self.php.workers()))
        id, reply = await self.neighbour.call("recall", {})
        self.assertEqual("kept", json.loads(self.text(reply, id))["remembered"]["mine"])
        call = asyncio.create_task(self.neighbour.call("ask", {"sentinel": "whether it serves"}))
        await (await self.neighbour.question("whether it serves")).answer("it does")
        id, reply = await call
        self.assertEqual("it does", self.text(reply, id))

    async def client(self) -> McpClient:
        client = McpClient(self.url, timeout=30)
        self.addCleanup(client.http.close)
        await client.initialize()
        return client

    async def raw(self, client: McpClient, body: bytes) -> tuple[int, dict]:
        """What is answered to bytes that no client would send."""
        http = HttpClient(self.url)
        self.addCleanup(http.close)
        headers = {"Content-Type": "application/json", "Mcp-Session-Id": client.session_id}
        response = await asyncio.wait_for(http.request("POST", headers, body), 30)
        return response.status, json.loads(await asyncio.wait_for(response.body(), 30))

    def text(self, reply: Reply, id: object) -> str:
        self.assertEqual(200, reply.status, reply)
        return reply.response(id)["result"]["content"][0]["text"]

    async def test_initialize_again_and_again_takes_no_session_that_is_in_use(self) -> None:
        made, refused = [], 0
        for _ in range(3 * SESSIONS):
            try:
                client = await self.client()
            except HttpError as error:
                self.assertIn("503", str(error))
                self.assertIn("max_sessions", str(error))
                refused += 1
                continue
            # Whoever made a second request has a minute before it gives way to the next.
            await client.request("ping")
            made.append(client)
        self.assertEqual((SESSIONS - 1, 3 * SESSIONS), (len(made), len(made) + refused))
        self.assertEqual(204, await made[0].delete())
        await self.client()

    async def test_calls_whose_questions_are_never_answered_stop_at_the_limit(self) -> None:
        client = await self.client()
        asked = [asyncio.create_task(client.call("ask", {"sentinel": f"question {n}"})) for n in range(PENDING)]
        for n in range(PENDING):
            await client.question(f"question {n}")
        for n in range(10):
            id, reply = await client.call("ask", {"sentinel": f"one too many, {n}"})
            self.assertIn("max_pending", json.dumps(reply.response(id)["error"]))
        for n, call in enumerate(asked):
            await (await client.question(f"question {n}")).answer()
            id, reply = await call
            self.assertEqual(f"question {n}", self.text(reply, id))

    async def test_a_huge_message_is_refused_with_the_limits_name(self) -> None:
        client = await self.client()
        id, reply = await client.call("echo", {"sentinel": "x" * 2 * MESSAGE})
        self.assertEqual(2 * MESSAGE, len(self.text(reply, id)))
        id, reply = await client.call("ask", {"sentinel": "x" * 2 * MESSAGE})
        self.assertIn("max_message_bytes", json.dumps(reply.response(id)["error"]))
        call = asyncio.create_task(client.call("ask", {"sentinel": "how long?"}))
        question = await client.question("how long?")
        answer = await question.answer("x" * (8 << 20))
        self.assertEqual(413, answer.status)
        self.assertIn("max_message_bytes", json.dumps(answer.messages))
        await question.answer("short")
        id, reply = await call
        self.assertEqual("short", self.text(reply, id))

    async def test_deep_json_is_refused_before_it_is_followed(self) -> None:
        client = await self.client()
        for depth, status in ((100_000, 400), (400, 200)):
            deep = b'{"a":' * depth + b"1" + b"}" * depth
            body = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":' + deep + b"}}"
            answer = await self.raw(client, body)
            self.assertEqual((status, True), (answer[0], "error" in answer[1]), answer)

    async def test_very_many_values_stop_at_the_limit_of_their_bytes(self) -> None:
        client = await self.client()
        value, refused = "x" * 1024, 0
        for n in range(2 * ATTRIBUTES // len(value)):
            id, reply = await client.call("remember", {"key": f"key {n}", "value": value})
            if "error" in reply.response(id):
                self.assertIn("max_attribute_bytes", json.dumps(reply.response(id)["error"]))
                refused += 1
        self.assertGreater(refused, ATTRIBUTES // len(value))
        id, reply = await client.call("recall", {})
        self.assertLessEqual(len(self.text(reply, id)), ATTRIBUTES)


class NoMoreSessions(unittest.IsolatedAsyncioTestCase):
    """300 clients come to a store that takes 200 sessions and lets none give way."""

    MOST, CLIENTS, AT_ONCE = 200, 300, 8

    async def initialize(self, http: HttpClient, id: int) -> tuple[int, dict[str, str], dict]:
        params = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "flood", "version": "1"},
        }
        body = json.dumps({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": params}).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        response = await asyncio.wait_for(http.request("POST", headers, body), 60)
        return response.status, response.headers, json.loads(await asyncio.wait_for(response.body(), 60))

    async def test_two_hundred_get_a_session_and_a_hundred_get_503_with_retry_after(self) -> None:
        dsn = f"file://{{data}}/store?durability=none&max_sessions={self.MOST}&on_full=reject"
        with PhpFpm(ROOT / "examples/server/public/index.php", workers=4, env={"MCP_STATE_DSN": dsn}) as php:
            with Nginx(php) as nginx:
                http = HttpClient(nginx.url + "/mcp")
                self.addCleanup(http.close)
                gate = asyncio.Semaphore(self.AT_ONCE)

                async def one(id: int) -> tuple[int, int, dict[str, str], dict]:
                    async with gate:
                        return id, *await self.initialize(http, id)

                answers = await asyncio.gather(*map(one, range(self.CLIENTS)))
        served = [answer for answer in answers if answer[1] == 200]
        refused = [answer for answer in answers if answer[1] == 503]
        self.assertEqual((self.MOST, self.CLIENTS - self.MOST), (len(served), len(refused)))
        self.assertEqual(self.MOST, len({headers["mcp-session-id"] for _, _, headers, _ in served}))
        for id, _, headers, message in refused:
            self.assertGreaterEqual(int(headers["retry-after"]), 1)
            self.assertNotIn("mcp-session-id", headers)
            self.assertEqual(("2.0", id), (message["jsonrpc"], message["id"]))
            self.assertIn("max_sessions", message["error"]["message"])


if __name__ == "__main__":
    unittest.main()