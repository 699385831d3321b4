"""Our session manager when its Redis fails: on the double of the SDK, both generations."""

from __future__ import annotations

import contextlib
import unittest
from collections.abc import Iterator

from support import double

from lib.redis_faults import RedisFaults


class UpTo08(RedisFaults, unittest.IsolatedAsyncioTestCase):
    generation = "08"

    @contextlib.contextmanager
    def served(self, dsn: str) -> Iterator[str]:
        with double(self.generation, MCP_STATE_DSN=dsn) as (url, _):
            yield url


class From09(UpTo08):
    generation = "09"


if __name__ == "__main__":
    unittest.main()
