"""What the figures were taken on."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import time
from pathlib import Path

from harness.peers import PHP, ROOT, directory


def describe() -> dict[str, str]:
    """What a reader must know, in the order it is shown."""
    cpu = re.search(r"model name\s*: (.+)", read("/proc/cpuinfo"))
    memory = re.search(r"MemTotal:\s*(\d+)", read("/proc/meminfo"))
    with directory() as path:
        file_system = output("stat", "-f", "-c", "%T", path)
        kept = f"{path.parent} ({file_system})"
    described = {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "commit": output("git", "-C", ROOT, "rev-parse", "--short=12", "HEAD"),
        "processor": f"{cpu[1] if cpu else platform.machine()}, {os.cpu_count()} processors",
        "memory": f"{int(memory[1]) / (1 << 20):.0f} GiB" if memory else "",
        "kernel": f"{platform.system()} {platform.release()}",
        "load at the start": " ".join(read("/proc/loadavg").split()[:3]),
        "sessions in": kept,
        "PHP": output(PHP, "-r", 'echo PHP_VERSION, PHP_ZTS ? " ZTS" : " NTS";'),
        "SQLite": output(PHP, "-r", 'echo class_exists("SQLite3") ? SQLite3::version()["versionString"] : "";'),
        "APCu": output(PHP, "-r", 'echo phpversion("apcu");'),
        "phpredis": output(PHP, "-r", 'echo phpversion("redis");'),
        "Redis": find(r"v=([\d.]+)", output("redis-server", "--version")),
        "nginx": find(r"nginx/([\d.]+)", output(os.environ.get("NGINX", "nginx"), "-v")),
        "Rust": find(r"rustc ([\d.]+)", output(os.environ.get("CARGO", "cargo").removesuffix("cargo") + "rustc", "--version")),
    }
    return {name: value for name, value in described.items() if value}


def read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def output(program: str, *arguments: object) -> str:
    if shutil.which(program) is None:
        return ""
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=20)
    return (done.stdout or done.stderr).strip()


def find(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    return found[1] if found else ""
