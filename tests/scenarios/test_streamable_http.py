"""The example server speaks Streamable HTTP as the specification (2025-11-25, and back to 2025-03-26) says."""

from __future__ import annotations

import asyncio
import json
import unittest
from typing import Any

from support import for_class, site

from lib.servers import wait_until
from mcpclient import McpClient, Reply
from mcpclient.http import HttpClient
from scenarios import Ask, Options, Tally, tool_text


GONE = "The client closed its event stream."
READY = "ready to handle connections"


class StreamableHttp(unittest.IsolatedAsyncioTestCase):
    env: dict[str, str] = {}
    ini: dict[str, object] = {}

    @classmethod
    def setUpClass(cls) -> None:
        cls.site = for_class(cls, site(ini=cls.ini, **cls.env))

    async def asyncSetUp(self) -> None:
        asyncio.get_running_loop().set_debug(False)
        self.client = McpClient(self.site.url, timeout=30)
        await self.client.initialize()
        self.addCleanup(self.client.http.close)

    async def raw(self, method: str, body: bytes = b"", **headers: str) -> tuple[int, dict[str, str], object]:
        """One exchange that no client would make; headers with `_` for `-`."""
        http = HttpClient(self.site.url)
        self.addCleanup(http.close)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        response = await asyncio.wait_for(http.request(method, named, body), 30)
        body = await response.body()
        return response.status, response.headers, json.loads(body) if body else None

    async def post(self, message: object, **headers: str) -> tuple[int, dict[str, str], object]:
        return await self.raw("POST", json.dumps(message).encode(), **headers)

    def ping(self, id: object = 1) -> dict[str, object]:
        return {"jsonrpc": "2.0", "id": id, "method": "ping"}


class Sessions(StreamableHttp):
    async def test_initialize_opens_a_session_and_agrees_on_a_version(self) -> None:
        for wanted, agreed in [("2025-06-18", "2025-06-18"), ("2025-03-26", "2025-03-26"), ("1999-01-01", "2025-11-25")]:
            params = {"protocolVersion": wanted, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
            status, headers, reply = await self.post(
                {"jsonrpc": "2.0", "id": "one", "method": "initialize", "params": params}
            )
            self.assertEqual((200, "one"), (status, reply["id"]))
            self.assertEqual(agreed, reply["result"]["protocolVersion"])
            self.assertRegex(headers["mcp-session-id"], r"^[\x21-\x7e]+$")

    async def test_a_request_without_the_header_is_400(self) -> None:
        status, _, reply = await self.post(self.ping())
        self.assertEqual((400, -32600), (status, reply["error"]["code"]))

    async def test_an_unknown_session_is_404(self) -> None:
        status, _, reply = await self.post(self.ping(), Mcp_Session_Id="5b2ff1f2-0000-4000-8000-3d46b3a6a1de")
        self.assertEqual(404, status)
        self.assertIn("error", reply)

    async def test_a_deleted_session_is_404(self) -> None:
        self.assertEqual(204, await self.client.delete())
        self.assertEqual(404, await self.client.delete())
        self.assertEqual(404, (await self.client.request("ping"))[1].status)

    async def test_an_unknown_protocol_version_is_400(self) -> None:
        status, _, _ = await self.post(
            self.ping(), Mcp_Session_Id=self.client.session_id, Mcp_Protocol_Version="1999-01-01"
        )
        self.assertEqual(400, status)


class Messages(StreamableHttp):
    async def test_what_is_no_json_rpc_is_400(self) -> None:
        for body, code in [(b"{", -32700), (b"[]", -32600), (b'{"jsonrpc":"2.0"}', -32600), (b'"ping"', -32600)]:
            status, _, reply = await self.raw("POST", body, Mcp_Session_Id=self.client.session_id)
            self.assertEqual((400, code), (status, reply["error"]["code"]), body)

    async def test_notifications_and_responses_are_202_without_a_body(self) -> None:
        for message in (
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 5, "result": {}},
            {"jsonrpc": "2.0", "id": 5, "error": {"code": 1, "message": "no"}},
            {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "what?"}},
        ):
            status, _, reply = await self.post(message, Mcp_Session_Id=self.client.session_id)
            self.assertEqual((202, None), (status, reply))

    async def test_get_is_405_and_names_what_is_allowed(self) -> None:
        status, headers, _ = await self.raw("GET", Mcp_Session_Id=self.client.session_id, Accept="text/event-stream")
        self.assertEqual((405, "POST, DELETE"), (status, headers["allow"]))

    async def test_ids_keep_their_type(self) -> None:
        for id in (1, "1", 0, "", -7, 2**53 - 1, "ü"):
            _, _, reply = await self.post(self.ping(id), Mcp_Session_Id=self.client.session_id)
            self.assertEqual((id, type(id)), (reply["id"], type(reply["id"])))

    async def test_errors_are_json_rpc_errors(self) -> None:
        for method, params, code in [
            ("no/such", {}, -32601),
            ("tools/call", {"name": "no-such"}, -32602),
            ("tools/call", {"name": "echo", "arguments": {}}, -32602),
            ("tools/call", {"name": "echo", "arguments": {"sentinel": 5}}, -32602),
        ]:
            id, reply = await self.client.request(method, params)
            self.assertEqual((200, code), (reply.status, reply.response(id)["error"]["code"]), method)

    async def test_a_reply_is_json_or_a_stream_as_the_tool_needs_it(self) -> None:
        _, plain = await self.client.call("echo", {"sentinel": "x"})
        _, stream = await self.client.call("count", {"n": 2}, progress=True)
        self.assertTrue(plain.headers["content-type"].startswith("application/json"))
        self.assertTrue(stream.headers["content-type"].startswith("text/event-stream"))

    async def test_what_the_client_does_not_accept_is_406(self) -> None:
        for accept, status in [("application/json", 200), ("*/*", 200), ("application/*", 200), ("text/event-stream", 406)]:
            seen, _, _ = await self.post(self.ping(), Mcp_Session_Id=self.client.session_id, Accept=accept)
            self.assertEqual(status, seen, accept)

    async def test_a_batch_is_answered_as_one(self) -> None:
        reply = await self.client.post([self.ping("a"), self.ping("b"), {"jsonrpc": "2.0", "method": "notifications/x"}])
        self.assertTrue(reply.is_array)
        self.assertEqual({"a", "b"}, {message["id"] for message in reply.messages})

    async def test_progress_comes_only_when_asked_for(self) -> None:
        id, reply = await self.client.call("count", {"n": 3})
        self.assertEqual([id], [message.get("id") for message in reply.messages])

    async def test_a_client_without_elicitation_is_not_asked(self) -> None:
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        _, headers, _ = await self.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
        self.client.session_id = headers["mcp-session-id"]
        id, reply = await self.client.call("ask", {"sentinel": "x"})
        self.assertTrue(reply.response(id)["result"]["isError"])
        self.assertEqual([], self.client.questions)


class BadInput(StreamableHttp):
    """What the store refuses is the client's mistake: 4xx or a JSON-RPC error, and the session goes on."""

    async def asyncTearDown(self) -> None:
        self.assertEqual(200, (await self.client.request("ping"))[1].status)

    async def test_session_ids_that_cannot_be(self) -> None:
        for id in ("with space", "x" * 5000, "\xe4"):
            for method in ("POST", "DELETE"):
                body = json.dumps(self.ping()).encode() if method == "POST" else b""
                status, _, _ = await self.raw(method, body, Mcp_Session_Id=id)
                self.assertIn(status, (400, 404), f"{method} {id[:20]!r}")

    async def test_attribute_keys_that_cannot_be(self) -> None:
        for key in ("", "a..b", "x" * 5000, "a\x00b"):
            id, reply = await self.client.call("remember", {"key": key, "value": "v"})
            self.assertEqual((200, -32602), (reply.status, reply.response(id)["error"]["code"]), key[:20])

    async def test_what_is_larger_than_the_store_takes(self) -> None:
        huge = "x" * (5 << 20)
        id, reply = await self.client.call("remember", {"key": "huge", "value": huge})
        self.assertEqual((200, -32603), (reply.status, reply.response(id)["error"]["code"]))
        # A plain reply is not stored.
        id, reply = await self.client.call("echo", {"sentinel": huge})
        self.assertIn(huge, json.dumps(reply.response(id)["result"]))
        ask = Ask(self.client, Options(self.site.url, ask_timeout=30, question_timeout=20))
        question = await ask.question()
        self.assertEqual(413, (await question.answer(huge)).status)
        tally = Tally()
        await question.answer()
        await ask.count(tally)
        self.assertEqual(1, tally.right, tally.remarks)

    async def test_request_ids_that_cannot_be(self) -> None:
        status, _, reply = await self.post(self.ping("x" * (1 << 20)), Mcp_Session_Id=self.client.session_id)
        self.assertIn(status, (200, 400))
        self.assertTrue("error" in reply or "result" in reply)


class Questions(StreamableHttp):
    env = {"MCP_KEEPALIVE": "0.2"}

    def ask(self, **options: Any) -> Ask:
        return Ask(self.client, Options(self.site.url, ask_timeout=30, question_timeout=20), **options)

    async def test_a_cancelled_call_ends_without_a_result_and_withdraws_its_question(self) -> None:
        ask = self.ask()
        question = await ask.question()
        await self.client.notify("notifications/cancelled", {"requestId": ask.id})
        reply = await ask.reply()
        self.assertFalse(reply.timed_out)
        self.assertIsNone(reply.response(ask.id))
        withdrawn = reply.notifications("notifications/cancelled")
        self.assertEqual([question.id], [message["params"]["requestId"] for message in withdrawn])
        late = await question.answer()
        self.assertEqual(202, late.status)
        self.assertTrue(late.headers["x-test-log"].startswith("Discarded"), late.headers)

    async def test_cancelling_an_id_that_two_calls_have_touches_neither(self) -> None:
        twins = [self.ask(id=77), self.ask(id=77)]
        for ask in twins:
            await ask.question()
        await self.client.notify("notifications/cancelled", {"requestId": 77})
        tally = Tally()
        for ask in twins:
            await ask.answer()
            await ask.count(tally)
        self.assertEqual((2, 2), (tally.right, tally.total), tally.remarks)

    async def test_a_declined_question_is_a_plain_result(self) -> None:
        ask = self.ask()
        question = await ask.question()
        await self.client.post({"jsonrpc": "2.0", "id": question.id, "result": {"action": "decline"}})
        self.assertEqual(("declined", False), tool_text((await ask.reply()).response(ask.id)))

    async def test_an_error_for_an_answer_is_a_tool_error(self) -> None:
        ask = self.ask()
        question = await ask.question()
        error = {"code": -1, "message": "nobody is here"}
        await self.client.post({"jsonrpc": "2.0", "id": question.id, "error": error})
        text, is_error = tool_text((await ask.reply()).response(ask.id))
        self.assertIn("nobody is here", text)
        self.assertTrue(is_error)

    async def test_a_stream_that_waits_writes_comments(self) -> None:
        http = HttpClient(self.site.url)
        self.addCleanup(http.close)
        params = {"name": "ask", "arguments": {"sentinel": "comments"}}
        call = {"jsonrpc": "2.0", "id": "raw", "method": "tools/call", "params": params}
        response = await http.request("POST", {"Mcp-Session-Id": self.client.session_id}, json.dumps(call).encode())
        seen = b""
        async for chunk in response.chunks():
            seen += chunk
            if b"\n: " in seen:
                break
        http.discard(response)
        self.assertIn(b"comments", seen)

    async def test_a_client_that_leaves_is_noticed_and_its_question_abandoned(self) -> None:
        ask = self.ask()
        question = await ask.question()
        noticed = self.site.php.log().count(GONE)
        ask.leave()
        await asyncio.to_thread(wait_until, lambda: self.site.php.log().count(GONE) > noticed, "the worker notices")
        late = await question.answer()
        self.assertEqual(202, late.status)
        self.assertTrue(late.headers["x-test-log"].endswith(": Abandoned"), late.headers)

    async def test_a_question_expires_after_a_fraction_of_a_second(self) -> None:
        ask = self.ask(timeout=0.3)
        text, is_error = tool_text((await ask.reply()).response(ask.id))
        self.assertEqual(("No answer within 300 ms.", True), (text, is_error))


class OutputBuffering(StreamableHttp):
    """With the php.ini of a distribution."""

    ini = {"output_buffering": 4096, "zlib.output_compression": 1}

    async def test_a_question_is_not_held_back(self) -> None:
        self.client.add_headers({"Accept-Encoding": "gzip"})
        ask = Ask(self.client, Options(self.site.url, ask_timeout=30, question_timeout=20))
        tally = Tally()
        await ask.answer()
        await ask.count(tally)
        self.assertEqual(1, tally.right, tally.remarks)


class DuplicateIds(StreamableHttp):
    """With the policy `reject`."""

    env = {"MCP_DUPLICATES": "reject"}

    async def test_a_second_request_with_an_id_in_flight_is_409_and_the_first_goes_on(self) -> None:
        ask = Ask(self.client, Options(self.site.url, ask_timeout=30, question_timeout=20))
        question = await ask.question()
        status, _, reply = await self.post(self.ping(ask.id), Mcp_Session_Id=self.client.session_id)
        self.assertEqual((409, ask.id, -32600), (status, reply["id"], reply["error"]["code"]))
        status, _, _ = await self.post(self.ping(str(ask.id)), Mcp_Session_Id=self.client.session_id)
        self.assertEqual(200, status, "1 is not \"1\"")
        await question.answer()
        tally = Tally()
        await ask.count(tally)
        self.assertEqual(1, tally.right, tally.remarks)

    async def test_an_id_is_free_again_after_its_answer(self) -> None:
        for _ in range(3):
            status, _, _ = await self.post(self.ping(1), Mcp_Session_Id=self.client.session_id)
            self.assertEqual(200, status)


class OwnersThatDie(StreamableHttp):
    """A tool that ends its request, in a worker that lives on or not, leaves nothing behind."""

    async def test_exit_fatal_error_and_kill_abandon_the_question(self) -> None:
        for kind in ("exit", "fatal", "kill"):
            with self.subTest(kind):
                id, _ = await self.client.call("crash", {"kind": kind, "sentinel": f"crash by {kind}"})
                question = await self.client.question(f"crash by {kind}")
                late = await question.answer()
                self.assertEqual(202, late.status)
                self.assertTrue(late.headers["x-test-log"].endswith(": Abandoned"), late.headers)
                tally = Tally()
                again = Ask(self.client, Options(self.site.url, ask_timeout=30, question_timeout=20))
                await again.answer()
                await again.count(tally)
                self.assertEqual(1, tally.right, tally.remarks)


class Reload(StreamableHttp):
    async def test_a_graceful_reload_under_load_loses_nothing(self) -> None:
        ask = Ask(self.client, Options(self.site.url, ask_timeout=60, question_timeout=20))
        question = await ask.question()
        stop = asyncio.Event()
        tally = Tally()

        async def caller(number: int) -> None:
            calls = 0
            while not stop.is_set():
                word = f"{number}-{calls}"
                id, reply = await self.client.call("echo", {"sentinel": word})
                own = reply.response(id)
                tally.check(own is not None and tool_text(own) == (word, False), f"{word}: {reply}")
                calls += 1

        callers = [asyncio.create_task(caller(number)) for number in range(4)]
        before = self.site.php.log().count(READY)
        self.site.php.reload(wait=False)
        # The open question holds its worker, so until it is answered the reload is under way.
        await question.answer()
        await ask.count(tally)
        await asyncio.to_thread(wait_until, lambda: self.site.php.log().count(READY) > before, "php-fpm has reloaded")
        after = Ask(self.client, Options(self.site.url, ask_timeout=60, question_timeout=20))
        await after.answer()
        await after.count(tally)
        stop.set()
        await asyncio.gather(*callers)
        self.assertEqual(tally.total, tally.right, tally.remarks)


class StoreTrouble(unittest.TestCase):
    """A store that fails is 503 with Retry-After; 404 would make the client throw its session away."""

    async def initialize(self, url: str) -> Reply:
        client = McpClient(url, timeout=30)
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        return await client.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})

    def assert_unavailable(self, reply: Reply) -> None:
        self.assertEqual(503, reply.status, reply)
        self.assertIn("retry-after", reply.headers)
        self.assertIn("error", reply.messages[0])

    def test_without_the_extension(self) -> None:
        with site(extension=None) as server:
            self.assert_unavailable(asyncio.run(self.initialize(server.url)))

    def test_a_dsn_that_nobody_knows(self) -> None:
        with site(MCP_STATE_DSN="oracle://sessions") as server:
            reply = asyncio.run(self.initialize(server.url))
            self.assert_unavailable(reply)
            self.assertIn("oracle", reply.messages[0]["error"]["message"])

    def test_a_directory_that_cannot_be_written(self) -> None:
        with site(MCP_STATE_DSN="file:///proc/mcp-state") as server:
            reply = asyncio.run(self.initialize(server.url))
            self.assert_unavailable(reply)
            self.assertIn("/proc/mcp-state", reply.messages[0]["error"]["message"])

    def test_a_store_that_goes_away_does_not_end_the_session(self) -> None:
        with site() as server:
            store = server.php.data / "store"
            aside = store.with_name("elsewhere")

            async def story() -> None:
                async with McpClient(server.url, timeout=30) as client:
                    store.rename(aside)
                    store.touch()
                    _, reply = await client.request("ping")
                    self.assert_unavailable(reply)
                    store.unlink()
                    aside.rename(store)
                    _, reply = await client.request("ping")
                    self.assertEqual(200, reply.status, reply)

            asyncio.run(story())


if __name__ == "__main__":
    unittest.main()
