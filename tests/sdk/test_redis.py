"""Our session manager when its Redis fails: on the double of the SDK, both generations."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
import unittest
from collections.abc import Callable, Iterator

from support import double

from lib.redis import Redis
from lib.redis_faults import RedisFaults
from mcpclient import McpClient


class UpTo08(RedisFaults, unittest.IsolatedAsyncioTestCase):
    generation = "08"

    @contextlib.contextmanager
    def served(self, dsn: str) -> Iterator[str]:
        with double(self.generation, MCP_STATE_DSN=dsn) as (url, _):
            yield url

    async def test_a_question_during_which_the_server_dies_ends_in_time_and_the_tools_own_result_arrives(self) -> None:
        await self.assert_result_arrives(lambda redis: redis.kill())

    async def test_a_question_during_which_the_server_freezes_ends_in_time_and_the_tools_own_result_arrives(self) -> None:
        await self.assert_result_arrives(lambda redis: os.kill(redis.pid, signal.SIGSTOP))

    async def assert_result_arrives(self, befall: Callable[[Redis], None]) -> None:
        """An ask ends about timeout and retry_ms after it began, whatever befalls Redis, and what the tool returns is delivered."""
        timeout, retry = 3, 2
        with Redis() as redis, self.served(redis.dsn(f"retry_ms={1000 * retry}")) as url:
            async with McpClient(url, timeout=60) as client:
                arguments = {"sentinel": "own", "timeout": timeout}
                began = time.monotonic()
                call = asyncio.create_task(client.call("ask_or_go_on", arguments, progress=True))
                await client.question("own", 20)
                befall(redis)
                _, reply = await call
                took = time.monotonic() - began
                with contextlib.suppress(ProcessLookupError):
                    os.kill(redis.pid, signal.SIGCONT)
            result = (reply.responses() or [{}])[0].get("result", {})
            self.assertEqual("own: no answer", result.get("content", [{}])[0].get("text"), reply)
            self.assertEqual(1, len(reply.notifications("notifications/progress")), reply)
            # Each of some ten operations used to wait for retry_ms: that makes 20 s and more.
            self.assertLess(took, timeout + retry + 5)


class From09(UpTo08):
    generation = "09"


if __name__ == "__main__":
    unittest.main()
