"""Private servers for whole-system tests: php-fpm, nginx, PHP's built-in server.

Each lives in a temporary directory of its own, listens on a free loopback port or a Unix socket, is ready when its
`with` block begins and gone, with every process it started, when the block ends. Nothing of the system's services or of
/etc is changed. When root runs the tests, PHP runs as an unprivileged user and reads copies of what it needs, since the
repository may lie where that user may not look.

    with PhpFpm(app=ROOT / "examples/server/public/index.php") as php, Nginx(php) as web:
        urllib.request.urlopen(web.url + "/mcp", ...)

In values of `env` and `ini`, `{data}` stands for a directory that belongs to the server's user.
"""

from __future__ import annotations

import os
import pwd
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Callable, Mapping

ROOT = Path(__file__).resolve().parents[3]
STAGED = ("php", "examples", "tests", "benches")
DEADLINE = 30.0  # seconds for a start, a stop or a reload, before it counts as failed
TICK = 0.01  # seconds between two looks at something that sends no event


def _setup() -> dict[str, str]:
    """What scripts/setup found; the environment has the last word."""
    file = ROOT / "build" / "env.sh"
    lines = file.read_text().splitlines() if file.exists() else []
    found = dict(word.split("=", 1) for line in lines if line.startswith("export ") for word in shlex.split(line, comments=True)[1:])
    return {name: os.environ.get(name, value) for name, value in found.items()} | {
        name: os.environ[name] for name in ("PHP", "PHP_FPM", "NGINX") if name in os.environ
    }


SETUP = _setup()
EXTENSION = Path(os.environ.get("MCP_STATE_EXTENSION", ROOT / "build" / "mcp_state.so"))


def program(variable: str, name: str) -> str:
    """The path of a program, or a skipped test that names it."""
    found = SETUP.get(variable) or shutil.which(name)
    if not found:
        raise unittest.SkipTest(f"no {name} for {SETUP.get('PHP', 'the PHP at hand')}")
    return found


def children(pid: int) -> list[int]:
    """Pids of the living children of `pid`."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except (OSError, ValueError):
            continue
        if int(parent) == pid and state != "Z":
            found.append(int(stat.parent.name))
    return sorted(found)


def wait_until(condition: Callable[[], bool], what: str, seconds: float = DEADLINE) -> None:
    """Returns when `condition` holds; TimeoutError names `what` it waited for."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {seconds:g} s")
        time.sleep(TICK)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def accepts(address: str | tuple[str, int]) -> bool:
    """Whether something listens: a path is a Unix socket, a pair host and port."""
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family) as probe:
        probe.settimeout(DEADLINE)
        try:
            probe.connect(address)
        except OSError:
            return False
    return True


def unprivileged() -> str | None:
    """The user that servers run as when root runs the tests; None when the tests' own user is not root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "www-data" if "www-data" in names else "nobody"


class Server:
    """One server process with its directory and log. Subclasses say how it starts and when it is ready."""

    name = "server"

    def __init__(self, *, env: Mapping[str, str] | None = None, user: str | None = None) -> None:
        self.user = (user or unprivileged()) if os.geteuid() == 0 else None
        self.env = dict(env or {})
        self.process: subprocess.Popen[bytes] | None = None

    # -- what a subclass says

    def prepare(self) -> None:
        """Writes configuration into `self.dir`."""

    def command(self) -> list[str]:
        raise NotImplementedError

    def is_ready(self) -> bool:
        raise NotImplementedError

    # -- life

    def __enter__(self):
        # Not in $TMPDIR: a Unix socket's path ends at 107 bytes, and other users must get through.
        self.dir = Path(tempfile.mkdtemp(prefix=f"mcp-state-{self.name}-", dir="/tmp"))
        try:
            self.dir.chmod(0o755)
            self.data = self.dir / "data"
            self.data.mkdir(mode=0o700)
            if self.user:
                account = pwd.getpwnam(self.user)
                os.chown(self.data, account.pw_uid, account.pw_gid)
            self.log_file = self.dir / "server.log"
            self.start()
        except BaseException:
            self.stop()
            shutil.rmtree(self.dir, ignore_errors=True)
            raise
        return self

    def __exit__(self, kind, error, trace) -> None:
        self.stop()
        log = self.log()
        shutil.rmtree(self.dir, ignore_errors=True)
        if kind is not None:
            tail = "".join(f"    {line}\n" for line in log.splitlines()[-40:])
            print(f"\nlog of {self.name} (pid {self.pid}), its end:\n{tail}", file=sys.stderr)
        elif crash := re.search(r".*exited on signal (?:4|6|7|8|11)\b.*", log):
            raise AssertionError(f"{self.name} lost a process: {crash[0]}")

    def start(self) -> None:
        """Starts and waits until it is ready. A port that somebody took in between is replaced."""
        for _ in range(5):
            self.prepare()
            with self.log_file.open("ab") as log:
                self.process = subprocess.Popen(
                    self.command(), cwd=self.dir, env=self._environment(), stdin=subprocess.DEVNULL, stdout=log,
                    stderr=subprocess.STDOUT, start_new_session=True, **self._identity(),
                )
            wait_until(lambda: self.process.poll() is not None or self.is_ready(), f"{self.name} is ready")
            if self.process.poll() is None:
                return
            if not re.search(r"address already in use", self.log(), re.IGNORECASE):
                break
        raise RuntimeError(f"{self.name} did not start:\n{self.log()}")

    def stop(self) -> None:
        """Ends the server and all it started; harmless when it has ended."""
        if self.process is None:
            return
        try:
            if self.process.poll() is None:
                self.process.terminate()
                self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            pass
        finally:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()

    # -- what tests ask

    @property
    def pid(self) -> int:
        return self.process.pid if self.process else 0

    def workers(self) -> list[int]:
        """Pids of the processes that serve requests."""
        return children(self.pid)

    def log(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    # -- for subclasses

    def _identity(self) -> dict:
        if not self.user:
            return {}
        account = pwd.getpwnam(self.user)
        return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}

    def _environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PHP", "MCP_", "NGINX"))}
        return inherited | {"TMPDIR": str(self.data)} | {name: self._fill(value) for name, value in self.env.items()}

    def _fill(self, value: object) -> str:
        return str(value).replace("{data}", str(self.data))

    def _copy(self, source: Path, name: str) -> Path:
        """A copy that the server's user can read, as `name` in the server's directory."""
        target = self.dir / name
        if target.exists():
            return target
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "target", "node_modules", "*.so")
            shutil.copytree(source, target, symlinks=True, ignore=ignored)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        for path in (target, *target.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() else 0o644)
        for path in target.relative_to(self.dir).parents:
            (self.dir / path).chmod(0o755)
        return target


class _Php(Server):
    """What php-fpm and the built-in server share: the entry script, the extension, ini settings."""

    def __init__(
        self,
        app: Path | str,
        *,
        extension: Path | str | None = EXTENSION,
        workers: int = 16,
        ini: Mapping[str, object] | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
    ) -> None:
        """
        app: the script that gets every request. extension: loaded into every process; None loads none.
        ini: settings of php.ini, SYSTEM ones too. env: environment of the PHP processes; without MCP_STATE_DSN the
        store is a private one in {data}. user: who serves when root runs the tests.
        """
        super().__init__(env={"MCP_STATE_DSN": "file://{data}/store?durability=none"} | dict(env or {}), user=user)
        self.source = Path(app).resolve()
        self.extension = Path(extension).resolve() if extension else None
        self.count = workers
        self.ini = {"display_errors": 0, "log_errors": 1, "error_reporting": -1} | dict(ini or {})

    def prepare(self) -> None:
        self.app = self._readable(self.source)
        settings = {name: self._fill(value) for name, value in self.ini.items()}
        if self.extension:
            # The copy keeps a rebuild from changing the file under a running server.
            settings = {"extension": str(self._copy(self.extension, self.extension.name))} | settings
        if quoted := [name for name, value in settings.items() if '"' in value]:
            raise ValueError(f"a double quote in ini setting {', '.join(quoted)}")
        scanned = self.dir / "conf.d"
        scanned.mkdir(exist_ok=True)
        (scanned / "zz-test.ini").write_text("".join(f'{name} = "{value}"\n' for name, value in settings.items()))
        (self.dir / "php.ini").write_text("")

    def _environment(self) -> dict[str, str]:
        # The distribution's conf.d brings the modules; the settings of the test come last.
        return super()._environment() | {"PHP_INI_SCAN_DIR": f":{self.dir / 'conf.d'}"}

    def _readable(self, path: Path) -> Path:
        if not self.user:
            return path
        if ROOT in path.parents:
            for name in STAGED:
                if (ROOT / name).exists():
                    self._copy(ROOT / name, f"repository/{name}")
            return self.dir / "repository" / path.relative_to(ROOT)
        return self._copy(path.parent, "app") / path.name


class PhpFpm(_Php):
    """php-fpm with a fixed number of workers on a Unix socket (`address`). As root its master stays root, as usual."""

    name = "php-fpm"
    _READY = "ready to handle connections"

    def __init__(
        self, app: Path | str, *, process_control_timeout: int = 30, max_requests: int = 0, **options
    ) -> None:
        """
        process_control_timeout: seconds that a graceful reload leaves to requests being served. max_requests: a worker is
        replaced after so many; 0: never.
        """
        super().__init__(app, **options)
        self.max_requests = max_requests
        self.binary = program("PHP_FPM", "php-fpm")
        self.process_control_timeout = process_control_timeout

    @property
    def address(self) -> str:
        return str(self.dir / "fpm.sock")

    def prepare(self) -> None:
        super().prepare()
        pool_user = f"user = {self.user}\ngroup = {_group(self.user)}\nlisten.owner = {self.user}\n" if self.user else ""
        (self.dir / "fpm.conf").write_text(
            f"""[global]
error_log = {self.log_file}
daemonize = no
process_control_timeout = {self.process_control_timeout}
[www]
{pool_user}listen = {self.address}
pm = static
pm.max_children = {self.count}
pm.max_requests = {self.max_requests}
clear_env = no
catch_workers_output = yes
decorate_workers_output = no
"""
        )

    def command(self) -> list[str]:
        return [self.binary, "-F", "-c", str(self.dir / "php.ini"), "-y", str(self.dir / "fpm.conf")]

    def is_ready(self) -> bool:
        return self._READY in self.log() and accepts(self.address)

    def reload(self, wait: bool = True) -> None:
        """Graceful reload (SIGUSR2): requests being served end first, then new workers start. Waits for these."""
        before = self.log().count(self._READY)
        os.kill(self.pid, signal.SIGUSR2)
        if wait:
            wait_until(lambda: self.log().count(self._READY) > before, "php-fpm has reloaded", 2 * DEADLINE)

    def _identity(self) -> dict:
        return {}  # the pool's user serves


class PhpBuiltin(_Php):
    """PHP's built-in server, one process for each request at a time, behind one port (scripts/serve.py says why)."""

    name = "php-builtin"

    def prepare(self) -> None:
        super().prepare()
        self.port = free_port()

    def command(self) -> list[str]:
        user = ["--user", self.user] if self.user else []
        options = ["--php", program("PHP", "php"), "--port", str(self.port), "--workers", str(self.count), *user]
        return [sys.executable, str(ROOT / "scripts/serve.py"), *options, "-c", str(self.dir / "php.ini"), str(self.app)]

    def is_ready(self) -> bool:
        return accepts(("127.0.0.1", self.port))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _identity(self) -> dict:
        return {}  # the dispatcher stays, its PHP processes change


class Nginx(Server):
    """
    nginx in front of a PhpFpm: every path goes to its entry script, nothing is buffered, waits may be long. Of several
    PhpFpm with one entry script, the one that serves the fewest requests gets the next; or they take turns.
    """

    name = "nginx"

    def __init__(
        self, fastcgi: PhpFpm, *more: PhpFpm, in_turn: bool = False, read_timeout: int = 600, user: str | None = None
    ) -> None:
        """read_timeout: seconds of silence after which nginx gives a request up (its own default is 60)."""
        super().__init__(user=user)
        self.binary = program("NGINX", "nginx")
        self.fastcgi = fastcgi
        self.upstream = (fastcgi, *more)
        self.choice = "" if in_turn else "least_conn;"
        self.read_timeout = read_timeout

    def prepare(self) -> None:
        self.port = free_port()
        temporary = "\n".join(
            f"    {kind}_temp_path {self.data / kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        parameters = {
            "GATEWAY_INTERFACE": "CGI/1.1",
            "SERVER_SOFTWARE": "nginx",
            "QUERY_STRING": "$query_string",
            "REQUEST_METHOD": "$request_method",
            "CONTENT_TYPE": "$content_type",
            "CONTENT_LENGTH": "$content_length",
            "SCRIPT_FILENAME": str(self.fastcgi.app),
            "SCRIPT_NAME": "/" + self.fastcgi.app.name,
            "REQUEST_URI": "$request_uri",
            "DOCUMENT_URI": "$document_uri",
            "DOCUMENT_ROOT": str(self.fastcgi.app.parent),
            "SERVER_PROTOCOL": "$server_protocol",
            "REQUEST_SCHEME": "$scheme",
            "REMOTE_ADDR": "$remote_addr",
            "REMOTE_PORT": "$remote_port",
            "SERVER_ADDR": "$server_addr",
            "SERVER_PORT": "$server_port",
            "SERVER_NAME": "$server_name",
            "REDIRECT_STATUS": "200",
        }
        lines = "\n".join(f"            fastcgi_param {name} {value};" for name, value in parameters.items())
        pools = "\n".join(f"        server unix:{pool.address} max_fails=0;" for pool in self.upstream)
        (self.dir / "nginx.conf").write_text(
            f"""daemon off;
pid {self.data}/nginx.pid;
worker_processes 1;
error_log {self.log_file} warn;
events {{ worker_connections 1024; }}
http {{
    access_log off;
{temporary}
    client_max_body_size 64m;
    upstream php {{
        {self.choice}
{pools}
    }}
    server {{
        listen 127.0.0.1:{self.port} backlog=1024;
        location / {{
            fastcgi_pass php;
            fastcgi_buffering off;
            fastcgi_read_timeout {self.read_timeout}s;
            fastcgi_send_timeout {self.read_timeout}s;
{lines}
        }}
    }}
}}
"""
        )
        # nginx opens its log itself, as the user it runs as.
        self.log_file.touch()
        if self.user:
            os.chown(self.log_file, pwd.getpwnam(self.user).pw_uid, -1)

    def command(self) -> list[str]:
        return [self.binary, "-p", str(self.data), "-e", str(self.log_file), "-c", str(self.dir / "nginx.conf")]

    def is_ready(self) -> bool:
        return accepts(("127.0.0.1", self.port))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def _group(user: str) -> str:
    import grp

    return grp.getgrgid(pwd.getpwnam(user).pw_gid).gr_name
