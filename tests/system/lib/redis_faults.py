"""What an MCP server must do when its Redis dies, is full, stands still or throws it out: HTTP 503, and right afterwards."""

from __future__ import annotations

import contextlib
import os
import signal
import unittest

from lib.redis import Redis
from mcpclient import McpClient, Reply
from scenarios import Ask, Options, Tally

OPTIONS = "timeout_ms=300&retry_ms=100"


class RedisFaults:
    """The tests; a subclass says what server. Each has a Redis of its own, which loses no acknowledged write."""

    def served(self, dsn: str) -> contextlib.AbstractContextManager[str]:
        """A server on the store $dsn: its URL."""
        raise NotImplementedError

    def assert_unavailable(self: unittest.TestCase, reply: Reply) -> None:
        self.assertEqual(503, reply.status, reply)

    @contextlib.asynccontextmanager
    async def story(self):
        """A server, and a client with a session."""
        with Redis("--appendonly", "yes", "--appendfsync", "always") as redis, self.served(redis.dsn(OPTIONS)) as url:
            self.options = Options(url, call_timeout=30, ask_timeout=25, question_timeout=20)
            async with McpClient(url, timeout=30) as client:
                yield redis, client

    async def assert_right(self: unittest.TestCase, client: McpClient) -> None:
        """A call and a question come right."""
        _, reply = await client.request("ping")
        self.assertEqual(200, reply.status, reply)
        tally = Tally()
        ask = Ask(client, self.options)
        await ask.answer()
        await ask.count(tally)
        self.assertEqual(1, tally.right, tally.remarks)

    async def test_a_server_that_dies_is_503_and_the_session_goes_on_when_it_is_back(self) -> None:
        async with self.story() as (redis, client):
            await self.assert_right(client)
            redis.kill()
            _, reply = await client.request("ping")
            self.assert_unavailable(reply)
            redis.start()
            await self.assert_right(client)

    async def test_a_server_that_stands_still_is_503(self) -> None:
        async with self.story() as (redis, client):
            os.kill(redis.pid, signal.SIGSTOP)
            _, reply = await client.request("ping")
            os.kill(redis.pid, signal.SIGCONT)
            self.assert_unavailable(reply)
            await self.assert_right(client)

    async def test_a_server_out_of_memory_is_503(self) -> None:
        async with self.story() as (redis, client):
            redis.ask("CONFIG", "SET", "maxmemory", "1mb")
            self.assert_unavailable(await self.refused(self.options.url))
            # What frees space works.
            self.assertIn(await client.delete(), (200, 204))
            redis.ask("CONFIG", "SET", "maxmemory", "0")
            async with McpClient(self.options.url, timeout=30) as again:
                await self.assert_right(again)

    async def refused(self, url: str) -> Reply:
        """What a client is told that would open a session."""
        client = McpClient(url, timeout=30)
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        try:
            return await client.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
        finally:
            client.http.close()

    async def test_connections_that_are_thrown_out_between_calls_are_not_noticed(self) -> None:
        async with self.story() as (redis, client):
            for _ in range(5):
                redis.ask("CLIENT", "KILL", "TYPE", "normal")
                await self.assert_right(client)

    async def test_a_question_that_is_open_while_the_server_restarts_ends(self) -> None:
        async with self.story() as (redis, client):
            ask = Ask(client, self.options)
            question = await ask.question()
            redis.kill()
            redis.start()
            late = await question.answer()
            self.assertEqual(202, late.status)
            reply = await ask.reply()
            self.assertFalse(reply.timed_out, reply)
            await self.assert_right(client)
