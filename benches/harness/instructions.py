"""How many instructions an operation takes in the engine and in the bare LMDB transaction, counted by callgrind.

Counts repeat almost exactly, whatever else the machine does; that is what makes them fit to guard. What the kernel does is not
counted, nor what waiting for memory costs.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from harness.peers import NATIVE, PEERS, directory, place

OPERATIONS = ("send", "take", "deliver", "claim", "get", "patch")
OURS, BARE = "ours-engine", "bare-lmdb"


def missing() -> str | None:
    """Why nothing can be counted here; None when it can."""
    if not shutil.which("valgrind"):
        return "valgrind is not installed"
    return PEERS[OURS].missing()


def count(peer: str) -> dict[str, int]:
    """Instructions of each operation, on average."""
    with directory() as path, place(PEERS[peer], None) as where:
        out = path / "callgrind"
        tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "-q"]
        done = subprocess.run([*tool, NATIVE, "hot", peer, where], capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise RuntimeError(f"valgrind: {done.stderr.strip() or f'exit status {done.returncode}'}")
        return inclusive(out)


def inclusive(out: Path) -> dict[str, int]:
    """What calls of the functions of hot.rs cost, with all that they call: see "Callgrind Format Specification" of valgrind."""
    names: dict[str, str] = {}
    spent = dict.fromkeys(OPERATIONS, 0)
    calls = dict.fromkeys(OPERATIONS, 0)
    called, expecting = None, 0
    for line in out.read_text().splitlines():
        if expecting and called in spent:
            spent[called] += int(line.split()[1])
            calls[called] += expecting
        expecting = 0
        if match := re.match(r"c?fn=\((\d+)\)(?: (.+))?", line):
            number, name = match.groups()
            if name is not None:
                names[number] = name
            if line.startswith("c"):
                found = re.search(r"\bhot::(\w+?)(?:::h[0-9a-f]+)?$", names[number])
                called = found[1] if found else None
        elif match := re.match(r"calls=(\d+)", line):
            expecting = int(match[1])
    if silent := [operation for operation, times in calls.items() if times == 0]:
        raise RuntimeError(f"callgrind saw no call of {', '.join(silent)}")
    return {operation: spent[operation] // calls[operation] for operation in OPERATIONS}
