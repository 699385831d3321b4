"""Each way to install gives a working extension: phpize (what PIE does), the release archive, the Debian package."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from lib.servers import DEADLINE, ROOT, SETUP, program

VERSION = re.search('^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
BUILD_SECONDS = 600
# What a shell finds, without a Rust toolchain.
BARE_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"

# One question to the client and its answer, through the public API; the argument is a store's directory.
ROUND = r"""
require $argv[1] . '/php/autoload.php';
$session = McpState\Store::open("file://$argv[2]/store?durability=none")->createSession();
$owner = $session->attach();
$request = $owner->sendRequest(['jsonrpc' => '2.0', 'method' => 'elicitation/create'], 60000);
count($owner->takeOutgoing()) === 1 || exit('nothing to take');
$session->deliverResponse($request->id, '{"n":42}')->delivered || exit('not delivered');
echo $request->claim()->json()['n'], ' ', phpversion('mcp_state'), "\n";
"""


def run(*command: object, check: bool = True, **options) -> str:
    """Standard output; a failed test with all output where the command fails."""
    options = {"timeout": DEADLINE, "stdin": subprocess.DEVNULL} | options
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if check and done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def php(code: str) -> str:
    return run(program("PHP", "php"), "-n", "-r", code)


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        directory = tempfile.TemporaryDirectory(prefix="mcp-state-packages-", dir="/tmp")
        cls.addClassCleanup(directory.cleanup)
        cls.directory = Path(directory.name)
        cls.dist = cls.directory / "dist"
        # The command as the other tests build it: an optimized one would be built for this alone.
        run(ROOT / "scripts/cargo", "build", "--quiet", "--package", "mcp-state-cli", timeout=BUILD_SECONDS)
        target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target" / f"php-{SETUP['PHP_ABI']}"))
        cls.env = os.environ | {
            "MCP_STATE_CLI": f"{target}/debug/mcp-state",
            "CLI_BUILD": str(cls.directory / "cli"),
            "SOURCE_DATE_EPOCH": "1700000000",
        }
        run(ROOT / "scripts/build-cli", cls.env["CLI_BUILD"], env=cls.env)
        run(ROOT / "scripts/dist", cls.dist, env=cls.env, timeout=BUILD_SECONDS)

    def fresh(self) -> Path:
        return Path(tempfile.mkdtemp(dir=self.directory))

    def assert_serves_a_round(self, *options: object, php: str | None = None) -> None:
        store = self.fresh().resolve()
        answer = run(php or program("PHP", "php"), *options, "-r", ROUND, "--", ROOT, store)
        self.assertEqual(f"42 {VERSION}\n", answer)

    def unpack(self, name: str) -> Path:
        tree = self.fresh()
        run("tar", "-xzf", self.dist / name, "-C", tree)
        return tree

    # -- the way PIE builds, and everybody with phpize

    def test_phpize_configure_make_test_and_install_give_a_working_extension_and_install_builds_nothing(self) -> None:
        tree = self.fresh() / "tree"
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
        )
        # A release's archive has no history.
        files = listed.stdout.split("\0") if listed.returncode == 0 else []
        if not files:
            ignored = shutil.ignore_patterns("target", "build", "vendor", "__pycache__")
            shutil.copytree(ROOT, tree, ignore=ignored, symlinks=True)
        for file in filter(None, files):
            if (ROOT / file).is_file():
                (tree / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / file, tree / file)
        extension = tree / "php" / "ext"
        # Crates that are built already for this PHP need not be built again.
        env = os.environ | {
            "PATH": SETUP["BUILD_PATH"],
            "CARGO_HOME": SETUP["CARGO_HOME"],
            "CARGO_TARGET_DIR": str(ROOT / "target" / f"php-{SETUP['PHP_ABI']}"),
            "NO_INTERACTION": "1",
            "REPORT_EXIT_STATUS": "1",
        }
        env |= {name: SETUP[name] for name in ("RUSTUP_HOME",) if name in SETUP}
        options = {"cwd": extension, "env": env, "timeout": BUILD_SECONDS}
        run(SETUP["PHPIZE"], **options)
        run("./configure", f"--with-php-config={SETUP['PHP_CONFIG']}", f"--with-cargo={SETUP['CARGO']}", **options)
        run("make", **options)
        tested = run("make", "test", "TESTS=tests/001-reflection.phpt tests/040-pending.phpt tests/060-wait.phpt", **options)
        self.assertRegex(tested, r"Tests passed +: +3 ")
        # Root has no Rust, and files of its own in the tree would be in the way of the next `make`.
        before = {path: path.stat().st_mtime_ns for path in extension.rglob("*")}
        root = self.fresh()
        bare = env | {"PATH": BARE_PATH, "CARGO": "/nonexistent", "CARGO_HOME": "/nonexistent"}
        run("make", "install", f"INSTALL_ROOT={root}", **options | {"env": bare})
        installed = root / run(SETUP["PHP_CONFIG"], "--extension-dir").strip().lstrip("/") / "mcp_state.so"
        self.assertEqual((extension / "modules/mcp_state.so").read_bytes(), installed.read_bytes())
        self.assertEqual(before[extension / "modules/mcp_state.so"], (extension / "modules/mcp_state.so").stat().st_mtime_ns)
        self.assert_serves_a_round("-n", "-d", f"extension={installed}")

    def test_the_folder_of_the_extension_alone_is_refused_with_the_reason(self) -> None:
        tree = self.fresh() / "ext"
        tree.mkdir()
        for file in ("config.m4", "Makefile.frag", "Cargo.toml"):
            shutil.copy(ROOT / "php/ext" / file, tree)
        run(SETUP["PHPIZE"], cwd=tree)
        said = run("./configure", f"--with-php-config={SETUP['PHP_CONFIG']}", cwd=tree, check=False, timeout=BUILD_SECONDS)
        self.assertIn("does not hold the whole of mcp-state", said)

    def test_the_manifest_tells_pie_where_to_build_and_what_comes_out(self) -> None:
        import json

        manifest = json.loads((ROOT / "composer.json").read_text())
        self.assertEqual("php-ext", manifest["type"])
        declared = manifest["php-ext"]
        self.assertTrue((ROOT / declared["build-path"] / "config.m4").is_file())
        configure = (ROOT / declared["build-path"] / "config.m4").read_text()
        self.assertIn(f"PHP_ARG_ENABLE([{declared['extension-name']}]", configure)
        for option in declared["configure-options"]:
            kind, name = option["name"].split("-", 1)
            self.assertIn(f"PHP_ARG_{kind.upper()}([{name}]", configure)
        self.assertIn("pre-packaged-binary", declared["download-url-method"])

    # -- release archives

    def test_the_release_archive_has_the_name_pie_looks_for_and_a_working_extension_at_its_root(self) -> None:
        # What PIE puts together from the PHP it installs for.
        version = php("echo PHP_MAJOR_VERSION, '.', PHP_MINOR_VERSION;")
        machine = {"aarch64": "arm64"}.get(platform.machine(), platform.machine())
        libc = "musl" if "musl" in run("ldd", "--version", check=False) else "glibc"
        debug = php("echo PHP_DEBUG ? '-debug' : '';")
        threads = php("echo PHP_ZTS ? '-zts' : '-nts';")
        name = f"php_mcp_state-{VERSION}_php{version}-{machine}-linux-{libc}{debug}{threads}.tgz"
        self.assertIn(name, os.listdir(self.dist))
        self.assert_serves_a_round("-n", "-d", f"extension={self.unpack(name)}/mcp_state.so")

    def test_every_archive_has_its_checksum(self) -> None:
        sums = dict(reversed(line.split("  ")) for line in (self.dist / "SHA256SUMS").read_text().splitlines())
        archives = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in self.dist.glob("*.tgz")}
        self.assertEqual(3, len(archives))
        self.assertEqual(archives, sums)

    def test_the_same_build_gives_the_same_archives(self) -> None:
        again = self.fresh()
        run(ROOT / "scripts/dist", again, env=self.env, timeout=BUILD_SECONDS)
        self.assertEqual((self.dist / "SHA256SUMS").read_text(), (again / "SHA256SUMS").read_text())

    def test_the_c_library_s_archive_builds_a_program_from_wherever_it_was_unpacked(self) -> None:
        [name] = [name for name in os.listdir(self.dist) if name.startswith("libmcp_state-")]
        library = self.unpack(name) / f"libmcp_state-{VERSION}"
        source = self.fresh() / "program.c"
        source.write_text(
            '#include <mcp_state.h>\n#include <stdio.h>\nint main(void) { printf("%u\\n", (unsigned) mcp_state_abi_version()); }\n'
        )
        # The two lines of the file that pkg-config would put together.
        described = (library / "lib/pkgconfig/mcp_state.pc").read_text()
        described = described.replace("${pcfiledir}", str(library / "lib/pkgconfig"))
        values = dict(line.split("=", 1) for line in described.splitlines() if re.match(r"\w+=", line))
        flags = [f"-I{values['includedir']}", f"-L{values['libdir']}", f"-Wl,-rpath,{values['libdir']}"]
        self.assertIn(f"Version: {VERSION}", described)
        run("gcc", source, *flags, "-lmcp_state", "-o", source.with_suffix(""))
        header = (library / "include/mcp_state.h").read_text()
        declared = re.search(r"#define MCP_STATE_ABI_VERSION (\d+)", header)
        self.assertEqual(declared[1] if declared else "1", run(source.with_suffix("")).strip())

    def test_the_command_line_s_archive_runs_and_brings_its_man_pages(self) -> None:
        [name] = [name for name in os.listdir(self.dist) if name.startswith("mcp-state-")]
        tree = self.unpack(name) / f"mcp-state-{VERSION}"
        self.assertEqual(f"mcp-state {VERSION}\n", run(tree / "bin/mcp-state", "--version"))
        self.assertIn(".TH mcp-state 1", (tree / "share/man/man1/mcp-state.1").read_text())

    # -- the Debian package

    def test_the_debian_package_installs_enables_serves_and_goes_without_a_trace(self) -> None:
        if not shutil.which("dpkg-deb") or subprocess.run(["dpkg", "-S", program("PHP", "php")], capture_output=True).returncode:
            self.skipTest(f"{SETUP.get('PHP')} came from no Debian package")
        packages = self.fresh()
        run(ROOT / "scripts/deb", packages, env=self.env, timeout=BUILD_SECONDS)
        version = php("echo PHP_MAJOR_VERSION, '.', PHP_MINOR_VERSION;")
        [extension] = packages.glob(f"php{version}-mcp-state_{VERSION}-1_*.deb")
        [command] = packages.glob(f"mcp-state_{VERSION}-1_*.deb")
        if os.geteuid() != 0:
            self.skipTest("only root can install a package")
        script = self.fresh() / "install.sh"
        script.write_text(f"""set -eu
# Really installed, over a layer that is gone with this process: the machine and its other processes see nothing of it.
mount -t tmpfs none {script.parent}
for part in etc usr var; do
    mkdir {script.parent}/$part {script.parent}/$part.work
    mount -t overlay overlay -o lowerdir=/$part,upperdir={script.parent}/$part,workdir={script.parent}/$part.work /$part
done
has() {{ if {SETUP["PHP"]} -m | grep -qx mcp_state; then echo "$1: loaded"; else echo "$1: not loaded"; fi; }}
traces() {{ find /etc /usr/lib/php /usr/bin /usr/share /var/lib/php -name '*mcp[-_]state*' | sort; }}
before=$(traces)
has before
export DEBIAN_FRONTEND=noninteractive
dpkg -i {extension} {command} >/tmp/dpkg.log 2>&1 || {{ cat /tmp/dpkg.log; exit 1; }}
has installed
for sapi in /etc/php/{version}/*/conf.d; do echo "enabled: $(ls $sapi | grep mcp_state)"; done
{SETUP["PHP"]} -r "$ROUND" -- {ROOT} "$STORE"
phpdismod -v {version} mcp_state
has disabled
phpenmod -v {version} mcp_state
has enabled
mcp-state --version
mcp-state --store file://$STORE/store sessions --json | grep -c '"id"'
test -r /usr/share/man/man1/mcp-state.1.gz -a -r /usr/share/bash-completion/completions/mcp-state
dpkg -i {extension} >/tmp/dpkg.log 2>&1 || {{ cat /tmp/dpkg.log; exit 1; }}
has upgraded
dpkg --purge php{version}-mcp-state mcp-state >/tmp/dpkg.log 2>&1 || {{ cat /tmp/dpkg.log; exit 1; }}
has purged
[ "$before" = "$(traces)" ] && echo no trace || traces
""")
        store = self.fresh().resolve()
        probe = subprocess.run(["unshare", "--mount", "true"], capture_output=True)
        if probe.returncode:
            self.skipTest("this machine gives root no mount namespace of its own")
        said = run("unshare", "--mount", "bash", script, env=os.environ | {"ROUND": ROUND, "STORE": str(store)}, timeout=BUILD_SECONDS)
        lines = said.splitlines()
        self.assertEqual("before: not loaded", lines[0], said)
        enabled = [line for line in lines if line.startswith("enabled: ") and line.endswith(".ini")]
        self.assertEqual({"enabled: 30-mcp_state.ini"}, set(enabled), said)
        rest = [line for line in lines[1:] if line not in enabled]
        self.assertEqual(
            ["installed: loaded", f"42 {VERSION}", "disabled: not loaded", "enabled: loaded", f"mcp-state {VERSION}", "1",
             "upgraded: loaded", "purged: not loaded", "no trace"],
            rest,
        )


if __name__ == "__main__":
    unittest.main()
