"""The official Python client (`mcp`) and the example server under nginx and php-fpm understand each other."""

from __future__ import annotations

import asyncio
import logging
import unittest
from typing import Any

try:
    import httpx2
    import mcp_types as types
    from mcp import Client
    from mcp.client.session import ClientRequestContext
    from mcp.client.streamable_http import streamable_http_client
except ImportError as error:
    raise unittest.SkipTest(f"the official client is not installed: {error}") from error

from lib.servers import ROOT, Nginx, PhpFpm

APP = ROOT / "examples/server/public/index.php"
SECONDS = 60  # for one test, before it counts as hung


class OfficialClient(unittest.TestCase):
    """Each test is one client with one session."""

    @classmethod
    def setUpClass(cls) -> None:
        # For each cancelled call the client logs the stream that ended without a response.
        logging.getLogger("mcp").setLevel(logging.CRITICAL)
        cls.php = PhpFpm(APP)
        cls.php.__enter__()
        cls.addClassCleanup(cls.php.__exit__, None, None, None)
        web = Nginx(cls.php)
        web.__enter__()
        cls.addClassCleanup(web.__exit__, None, None, None)
        cls.url = web.url + "/mcp"

    def setUp(self) -> None:
        self.asked: list[str] = []
        self.answering = asyncio.Event()
        self.answering.set()

    async def answer(self, context: ClientRequestContext, params: Any) -> types.ElicitResult:
        """The user: gives the word that is asked for, once `answering` is set."""
        self.asked.append(params.message)
        await self.answering.wait()
        return types.ElicitResult(action="accept", content={"answer": params.message})

    def client(self, **options: Any) -> Client:
        return Client(self.url, elicitation_callback=self.answer, **({"mode": "legacy"} | options))

    def run_story(self, story: Any) -> None:
        asyncio.run(asyncio.wait_for(story, SECONDS))

    def assert_text(self, expected: str, result: types.CallToolResult) -> None:
        self.assertEqual((expected, False), (result.content[0].text, bool(result.is_error)))

    def test_initialize_and_list_tools(self) -> None:
        async def story() -> None:
            async with self.client() as client:
                self.assertEqual("2025-11-25", client.session.protocol_version)
                self.assertEqual("mcp-state-example", client.session.server_info.name)
                names = [tool.name for tool in (await client.list_tools()).tools]
                self.assertLessEqual({"echo", "ask", "count"}, set(names))
                await client.session.send_ping()

        self.run_story(story())

    def test_a_client_that_probes_for_the_newer_protocol_falls_back(self) -> None:
        async def story() -> None:
            async with self.client(mode="auto") as client:
                self.assertEqual("2025-11-25", client.session.protocol_version)
                self.assert_text("x", await client.call_tool("echo", {"sentinel": "x"}))

        self.run_story(story())

    def test_50_parallel_calls_each_get_their_own_answer(self) -> None:
        async def story() -> None:
            async with self.client() as client:
                for _ in range(3):
                    words = [f"word-{i}" for i in range(50)]
                    results = await asyncio.gather(*(client.call_tool("echo", {"sentinel": word}) for word in words))
                    for word, result in zip(words, results):
                        self.assert_text(word, result)

        self.run_story(story())

    def test_8_parallel_elicitations_each_get_their_own_answer(self) -> None:
        async def story() -> None:
            async with self.client() as client:
                for _ in range(3):
                    self.asked.clear()
                    words = [f"ask-{i}" for i in range(8)]
                    results = await asyncio.gather(*(client.call_tool("ask", {"sentinel": word}) for word in words))
                    for word, result in zip(words, results):
                        self.assert_text(word, result)
                    self.assertEqual(words, sorted(self.asked))

        self.run_story(story())

    def test_progress_arrives_in_order(self) -> None:
        async def story() -> None:
            seen: list[float] = []

            async def progress(done: float, total: float | None, message: str | None) -> None:
                seen.append(done)

            async with self.client() as client:
                result = await client.call_tool("count", {"n": 20}, progress_callback=progress)
                self.assert_text("counted to 20", result)
            self.assertEqual(list(range(1, 21)), seen)

        self.run_story(story())

    def test_a_cancelled_call_frees_its_worker_and_the_session_goes_on(self) -> None:
        async def story() -> None:
            async with self.client() as client:
                self.answering.clear()
                # Twice as many as there are workers: they would all be taken if cancelling did not end them.
                for i in range(2 * self.php.count):
                    before = len(self.asked)
                    call = asyncio.create_task(client.call_tool("ask", {"sentinel": f"cancel-{i}", "timeout": 600}))
                    while len(self.asked) == before:
                        await asyncio.sleep(0.005)
                    call.cancel()
                    with self.assertRaises(asyncio.CancelledError):
                        await call
                self.answering.set()
                self.assert_text("after", await client.call_tool("ask", {"sentinel": "after"}))

        self.run_story(story())

    def test_closing_the_client_deletes_the_session(self) -> None:
        seen: list[tuple[str, int, str | None]] = []

        async def record(response: httpx2.Response) -> None:
            id = response.request.headers.get("mcp-session-id") or response.headers.get("mcp-session-id")
            seen.append((response.request.method, response.status_code, id))

        async def story() -> None:
            async with httpx2.AsyncClient(event_hooks={"response": [record]}, timeout=SECONDS) as http:
                async with Client(streamable_http_client(self.url, http_client=http), mode="legacy") as client:
                    self.assert_text("x", await client.call_tool("echo", {"sentinel": "x"}))
                id = next(id for _, _, id in seen if id is not None)
                self.assertEqual(("DELETE", 204, id), seen[-1])
                ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
                gone = await http.post(self.url, json=ping, headers={"Mcp-Session-Id": id})
                self.assertEqual(404, gone.status_code)

        self.run_story(story())


if __name__ == "__main__":
    unittest.main()
