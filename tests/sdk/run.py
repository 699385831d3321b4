#!/usr/bin/env python3
"""Runs the scenarios on the real `mcp/sdk`, its own file store beside our session manager, and prints one table.

    MCP_SDK_AUTOLOAD=…/vendor/autoload.php tests/sdk/run.py --runs 20
    tests/sdk/run.py --only C-many --sessions mcp-state
    tests/sdk/run.py --sessions mcp-state --store redis     a private Redis keeps our sessions

Exit status 1 when anything was not right with our session manager.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
from contextlib import ExitStack, nullcontext

from support import AUTOLOAD, WORKERS, busy_processors, site

from lib.redis import Redis
from scenarios import Options, Tally
from sdk_scenarios import ONLY_OURS, SCENARIOS, repeat

DELAY_US = 3000

HEAD = f"{'':<15}{'runs':>5}{'right':>14}{'lost':>7}{'swapped':>9}{'timed out':>10}{'errors':>8}{'strayed':>9}{'wall s':>9}{'p50 ms':>9}{'p99 ms':>9}"


def row(name: str, runs: int, tally: Tally) -> str:
    quantiles = ["-" if (q := tally.wait_quantile(share)) is None else f"{q * 1000:.1f}" for share in (0.5, 0.99)]
    wall = sum(tally.wall) / len(tally.wall)
    numbers = [f"{tally.right}/{tally.total}", tally.lost, tally.swapped, tally.timed_out, tally.errors, tally.strayed]
    text = "{:<15}{:>5}{:>14}{:>7}{:>9}{:>10}{:>8}{:>9}{:>9.2f}{:>9}{:>9}  {}"
    return text.format(name, runs, *numbers, wall, *quantiles, "" if tally.is_right else "WRONG")


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs the scenarios on the real mcp/sdk.")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--stock-runs", type=int, help="runs with the SDK's own store; by default as many")
    parser.add_argument("--only", action="append", choices=list(SCENARIOS), metavar="ID", help="this scenario (repeat)")
    parser.add_argument("--sessions", action="append", choices=["file", "mcp-state"], help="by default both")
    parser.add_argument("--store", choices=["local", "redis"], default="local", help="what keeps our sessions")
    parser.add_argument("--transport", choices=["own", "ours"], default="own", help="the SDK's transport, or ours")
    parser.add_argument("--seed", type=int, default=1, help="of the client's random moments")
    parser.add_argument("--size", type=int, default=300, help="how many questions R asks")
    parser.add_argument("--delays", type=int, metavar="SEED", help=f"delays of up to {DELAY_US} us in our sessions")
    parser.add_argument("--busy", action="store_true", help="keeps every processor busy meanwhile")
    parser.add_argument("--output-buffering", type=int, default=0, help="PHP's setting; Debian's is 4096")
    settings = parser.parse_args()

    if AUTOLOAD is None:
        sys.exit("mcp/sdk is not installed: MCP_SDK_AUTOLOAD must name the vendor/autoload.php of an installation")
    ids = settings.only or list(SCENARIOS)
    print(f"{AUTOLOAD}, {WORKERS} workers, output_buffering={settings.output_buffering}, {settings.transport} transport")
    wrong = 0
    for sessions in settings.sessions or ["file", "mcp-state"]:
        ours = sessions == "mcp-state"
        runs = settings.runs if ours or settings.stock_runs is None else settings.stock_runs
        print(f"\n{sessions}\n{HEAD}", flush=True)
        ini = {"output_buffering": settings.output_buffering}
        env = {"MCP_SDK_TRANSPORT": settings.transport}
        if settings.delays is not None and ours:
            env["MCP_STATE_DELAYS"] = f"{settings.delays}:{DELAY_US}"
        with ExitStack() as stack:
            if ours and settings.store == "redis":
                env["MCP_STATE_DSN"] = stack.enter_context(Redis()).dsn()
            url, _ = stack.enter_context(site(AUTOLOAD, sessions, ini=ini, **env))
            with busy_processors(os.cpu_count() or 1) if settings.busy else nullcontext():
                for id in ids:
                    if not ours and id in ONLY_OURS:
                        continue
                    timeout = 60.0 if ours else 8.0
                    options = Options(
                        url,
                        call_timeout=timeout,
                        ask_timeout=timeout * 0.8,
                        question_timeout=timeout * 0.6,
                        random=random.Random(f"{settings.seed} {id}"),
                        size=settings.size if id == "R" else 0,
                    )
                    tally = asyncio.run(repeat(id, options, runs))
                    print(row(id, runs, tally), flush=True)
                    if ours and not tally.is_right:
                        wrong += 1
                        for remark in tally.remarks[:5]:
                            print(f"    {remark}")
    print(f"\n{wrong} scenarios wrong with mcp-state" if wrong else "\nall right with mcp-state")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
