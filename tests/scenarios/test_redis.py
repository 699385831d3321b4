"""The example server when its Redis fails."""

from __future__ import annotations

import contextlib
import unittest
from collections.abc import Iterator

from support import site

from lib.redis_faults import RedisFaults
from mcpclient import Reply


class ExampleServer(RedisFaults, unittest.IsolatedAsyncioTestCase):
    @contextlib.contextmanager
    def served(self, dsn: str) -> Iterator[str]:
        with site(MCP_STATE_DSN=dsn) as server:
            yield server.url

    def assert_unavailable(self, reply: Reply) -> None:
        super().assert_unavailable(reply)
        self.assertIn("retry-after", reply.headers)
        self.assertIn("redis", reply.messages[0]["error"]["message"])


if __name__ == "__main__":
    unittest.main()
