#!/usr/bin/env python3
"""Runs the scenarios many times against the example server under nginx and php-fpm, and prints what came of them.

    tests/scenarios/run.py --runs 20
    tests/scenarios/run.py --runs 20 --delays 7 --busy      seeded delays around every operation, no idle processor
    tests/scenarios/run.py --only C-many --mode blob
    tests/scenarios/run.py --runs 20 --store redis          two pools that share only Redis, requests alternate

Exit status 1 when anything was not as it must be.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
import time
from contextlib import nullcontext

from support import WORKERS, busy_processors, site, two_sites

import scenarios
from scenarios import SCENARIOS, Options, Tally

DELAY_US = 3000
"""The longest of the seeded delays, microseconds."""


def format_row(id: str, runs: int, tally: Tally) -> str:
    quantiles = ["-" if (q := tally.wait_quantile(share)) is None else f"{q * 1000:.1f}" for share in (0.5, 0.99)]
    numbers = [f"{tally.right}/{tally.total}", tally.lost, tally.swapped, tally.timed_out, tally.errors, tally.strayed]
    row = "{:<15}{:>5}{:>13}{:>6}{:>9}{:>10}{:>8}{:>9}{:>9.2f}{:>9}{:>9}  {}"
    wall = sum(tally.wall) / len(tally.wall)
    return row.format(id, runs, *numbers, wall, *quantiles, "" if tally.is_right else "WRONG")


HEAD = f"{'':<15}{'runs':>5}{'right':>13}{'lost':>6}{'swapped':>9}{'timed out':>10}{'errors':>8}{'strayed':>9}{'wall s':>9}{'p50 ms':>9}{'p99 ms':>9}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs the scenarios against the example server under nginx and php-fpm.")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--only", action="append", choices=list(SCENARIOS), metavar="ID", help="this scenario (repeat)")
    parser.add_argument("--mode", choices=["mcp-state", "blob", "blob-lock"], default="mcp-state")
    parser.add_argument("--store", choices=["local", "redis"], default="local", help="redis: two pools share a private one")
    parser.add_argument("--seed", type=int, default=1, help="of the client's random moments")
    parser.add_argument("--delays", type=int, metavar="SEED", help=f"delays of up to {DELAY_US} us around every operation")
    parser.add_argument("--busy", action="store_true", help="keeps every processor busy meanwhile")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds until a call counts as timed out")
    options = parser.parse_args()

    env = {} if options.delays is None else {"MCP_STATE_DELAYS": f"{options.delays}:{DELAY_US}"}
    wrong = 0
    print(f"{options.mode}, {options.store} store, {WORKERS} workers, delays {env or 'none'}, {'busy' if options.busy else 'idle'}")
    print(HEAD, flush=True)
    served = two_sites(**env) if options.store == "redis" else site(options.mode, **env)
    with served as server:
        with busy_processors(os.cpu_count() or 1) if options.busy else nullcontext():
            for id in options.only or SCENARIOS:
                started = time.monotonic()
                tally = asyncio.run(repeat(id, server.url, options))
                print(format_row(id, options.runs, tally), f"[{time.monotonic() - started:.0f} s]", flush=True)
                for remark in [] if tally.is_right else tally.remarks[:5]:
                    print(f"    {remark}")
                wrong += not tally.is_right
    print(f"{wrong} scenarios wrong" if wrong else "all right")
    return 1 if wrong else 0


async def repeat(id: str, url: str, settings: argparse.Namespace) -> Tally:
    timeout = settings.timeout
    options = Options(
        url,
        call_timeout=timeout,
        ask_timeout=timeout * 0.8,
        question_timeout=timeout * 0.6,
        random=random.Random(f"{settings.seed} {id}"),
        sees_processes=settings.store == "local",
    )
    tally = Tally()
    for _ in range(settings.runs):
        tally.add(await scenarios.run(id, options))
    return tally


if __name__ == "__main__":
    sys.exit(main())
