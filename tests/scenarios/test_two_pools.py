"""Every scenario comes right on two php-fpm pools that share only Redis, whose requests alternate between them.

Once each; `tests/scenarios/run.py --runs 20 --store redis` is the full proof.
"""

from __future__ import annotations

import contextlib
import unittest

from support import Site, two_sites
from test_scenarios import Scenarios


class TwoPools(Scenarios, unittest.TestCase):
    runs = 1
    sees_processes = False

    @classmethod
    def served(cls) -> contextlib.AbstractContextManager[Site]:
        return two_sites()


del Scenarios  # It is no test itself.

if __name__ == "__main__":
    unittest.main()
