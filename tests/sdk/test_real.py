"""What a user meets on the real SDK besides the scenarios: long waits, clients that leave, full pools, a store that is gone.

Needs mcp/sdk: what `composer install` brought into php/vendor, or what MCP_SDK_AUTOLOAD names. LONG_WAIT is how many seconds the long wait takes;
90 is the full test.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
import unittest

from support import AUTOLOAD, SERVER, site

from mcpclient import McpClient
from mcpclient.http import HttpClient
from scenarios import Ask, Options, Tally, judge, sentinel
from sdk_scenarios import Scenarios
from stdio_scenarios import StdioScenarios

LONG_WAIT = float(os.environ.get("LONG_WAIT", "3"))


@unittest.skipUnless(AUTOLOAD, "mcp/sdk is not installed, and MCP_SDK_AUTOLOAD names no other place")
class RealSdk(unittest.IsolatedAsyncioTestCase):
    transport = "own"
    env: dict[str, str] = {}
    ini: dict[str, object] = {}

    @classmethod
    def setUpClass(cls) -> None:
        stack = contextlib.ExitStack()
        cls.addClassCleanup(stack.close)
        ini = {"output_buffering": 4096} | cls.ini
        served = site(AUTOLOAD, ini=ini, MCP_SDK_TRANSPORT=cls.transport, **cls.env)
        cls.url, cls.php = stack.enter_context(served)

    async def asyncSetUp(self) -> None:
        asyncio.get_running_loop().set_debug(False)
        self.options = Options(self.url, call_timeout=120, ask_timeout=100, question_timeout=30)
        self.client = self.options.client()
        await self.client.initialize()
        self.addCleanup(self.client.http.close)

    async def raw(self, method: str, body: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
        http = HttpClient(self.url)
        self.addCleanup(http.close)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        response = await http.request(method, named | {"Content-Type": "application/json"}, body.encode())
        return response.status, response.headers, await response.body()


class OwnTransport(RealSdk):
    async def test_a_question_that_is_answered_after_a_long_wait(self) -> None:
        ask = Ask(self.client, self.options)
        await ask.question()
        await asyncio.sleep(LONG_WAIT)
        answered = time.perf_counter()
        await ask.answer()
        tally = Tally()
        await ask.count(tally)
        self.assertTrue(tally.is_right, tally.remarks)
        print(f"a wait of {LONG_WAIT:g} s: the result came {(time.perf_counter() - answered) * 1000:.1f} ms after the answer")

    async def test_a_session_is_there_only_for_its_principal(self) -> None:
        alice = McpClient(self.url, headers={"X-Test-Principal": "alice"})
        self.addCleanup(alice.http.close)
        await alice.initialize()
        self.assertEqual(200, (await alice.request("ping"))[1].status)
        alice.add_headers({"X-Test-Principal": "bob"})
        self.assertEqual(404, (await alice.request("ping"))[1].status)

    async def test_an_unknown_session_is_404(self) -> None:
        self.client.session_id = "5b2ff1f2-0000-4000-8000-3d46b3a6a1de"
        self.assertEqual(404, (await self.client.request("ping"))[1].status)


class OurTransport(RealSdk):
    transport = "ours"
    env = {"MCP_STATE_KEEP_ALIVE_MS": "300"}

    async def test_a_stream_that_waits_writes_comments_and_delivers_its_answer(self) -> None:
        word = sentinel("kept-alive")
        body = (
            '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":'
            f'{{"name":"ask","arguments":{{"sentinel":"{word}","timeout":60}}}}}}'
        )
        http = HttpClient(self.url)
        self.addCleanup(http.close)
        headers = {"Content-Type": "application/json", "Mcp-Session-Id": str(self.client.session_id)}
        response = await http.request("POST", headers, body.encode())
        seen = b""
        async for chunk in response.chunks():
            seen += chunk
            if seen.count(b": keep-alive") == 2 and b"answered" not in seen:
                id = int(seen.split(b'"id":')[1].split(b",")[0].split(b"}")[0])
                result = {"action": "accept", "content": {"answer": "answered"}}
                await self.client.post({"jsonrpc": "2.0", "id": id, "result": result})
        self.assertIn(b"answered", seen)

    async def test_a_client_that_leaves_frees_its_worker_and_its_question_is_late(self) -> None:
        for _ in range(2 * self.php.count):
            ask = Ask(self.client, self.options)
            question = await ask.question()
            self.assertIsNotNone(question)
            ask.leave()
        # Twice as many as there are workers: they would all be taken.
        tally = Tally()
        again = Ask(self.client, self.options)
        await again.answer()
        await again.count(tally)
        self.assertTrue(tally.is_right, tally.remarks)
        late = await question.answer()
        self.assertEqual(202, late.status)


class OurTransportWherePhpIgnoresAborts(OurTransport):
    ini = {"ignore_user_abort": 1}


class FullPool(RealSdk):
    env = {"MCP_STATE_MAX_WAITING": "3"}

    async def test_a_question_too_many_is_refused_at_once_and_the_pool_stays_free(self) -> None:
        waiting = [Ask(self.client, self.options) for _ in range(3)]
        for ask in waiting:
            self.assertIsNotNone(await ask.question())
        refused = Ask(self.client, self.options)
        reply = await refused.reply()
        verdict, remark = judge(refused.id, reply, refused.word)
        self.assertIn("3 exchanges already wait for their clients", remark, verdict)
        tally = Tally()
        for ask in waiting:
            await ask.answer()
            await ask.count(tally)
        again = Ask(self.client, self.options)
        await again.answer()
        await again.count(tally)
        self.assertTrue(tally.is_right, tally.remarks)


class Duplicates(RealSdk):
    env = {"MCP_STATE_REJECT": "1"}

    async def test_a_second_request_with_an_id_in_flight_is_refused_and_the_first_is_served(self) -> None:
        ask = Ask(self.client, self.options, id=1)
        question = await ask.question()
        _, second = await self.client.call("echo", {"sentinel": "x"}, id=1)
        self.assertEqual((409, -32600, 1), (second.status, second.messages[0]["error"]["code"], second.messages[0]["id"]))
        _, other = await self.client.call("echo", {"sentinel": "x"}, id="1")
        self.assertEqual(200, other.status)
        tally = Tally()
        await question.answer()
        await ask.count(tally)
        self.assertTrue(tally.is_right, tally.remarks)

    async def test_an_id_may_be_used_again_and_again(self) -> None:
        tally = Tally()
        for _ in range(20):
            ask = Ask(self.client, self.options, id=1)
            await ask.answer()
            await ask.count(tally)
            id, reply = await self.client.call("echo", {"sentinel": "again"}, id=1)
            tally.count(*judge(id, reply, "again"))
        self.assertTrue(tally.is_right, tally.remarks)


class StoreGone(RealSdk):
    async def test_a_store_that_cannot_be_opened_is_no_404(self) -> None:
        store = self.php.data / "store"
        hidden = self.php.data / "hidden"
        store.rename(hidden)
        store.write_text("not a directory")
        self.php.reload()
        try:
            status, headers, body = await self.raw(
                "POST", '{"jsonrpc":"2.0","id":1,"method":"ping"}', Mcp_Session_Id=str(self.client.session_id)
            )
        finally:
            store.unlink()
            hidden.rename(store)
            self.php.reload()
        self.assertNotEqual(404, status)
        self.assertNotIn(b"not found", body.lower())
        self.assertEqual(200, (await self.client.request("ping"))[1].status, "the session has survived")


@unittest.skipUnless(AUTOLOAD, "mcp/sdk is not installed, and MCP_SDK_AUTOLOAD names no other place")
class Stdio(StdioScenarios, unittest.TestCase):
    script = SERVER.with_name("stdio.php")
    env = {"MCP_SDK_AUTOLOAD": str(AUTOLOAD)}


@unittest.skipUnless(AUTOLOAD, "mcp/sdk is not installed, and MCP_SDK_AUTOLOAD names no other place")
class RealScenarios(Scenarios, unittest.TestCase):
    @classmethod
    def served(cls):
        return site(AUTOLOAD, ini={"output_buffering": 4096})


del RealSdk  # It is no test itself.

if __name__ == "__main__":
    unittest.main()
