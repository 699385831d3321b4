"""php-fpm without the extension, by PHP's FFI as its default (`ffi.enable=preload`) allows it: opcache preloads the classes that
use it, and the library comes from `ffi.preload` or from its file.
"""

from __future__ import annotations

import json
import os
import subprocess
import unittest
import urllib.error
import urllib.request
from pathlib import Path

from lib.servers import EXTENSION, ROOT, Nginx, PhpFpm, program, wait_until

LIBRARY = Path(os.environ.get("MCP_STATE_LIBRARY", ROOT / "build" / "libmcp_state.so"))


class FfiFpm(PhpFpm):
    """A pool whose PHP is set up for FFI: by `scope`, `ffi.preload` loads the library when PHP starts."""

    def __init__(self, *, scope: bool, preload: bool = True, extension: Path | None = None) -> None:
        super().__init__(ROOT / "tests" / "system" / "ffi" / "app.php", extension=extension, workers=4)
        self.scope, self.preload = scope, preload

    def prepare(self) -> None:
        library = self._copy(LIBRARY, "libmcp_state.so")
        self.ini |= {"ffi.enable": "preload", "opcache.enable": 1}
        if self.preload:
            self.ini |= {"opcache.preload": self._readable(ROOT / "php" / "ffi-preload.php")}
            self.ini |= {"opcache.preload_user": self.user} if self.user else {}
        if self.scope:
            # What docs/install.md says for a library that lies where ld.so does not look.
            header = (ROOT / "include" / "mcp_state.ffi.h").read_text()
            (self.dir / "mcp_state.ffi.h").write_text(header.replace('"libmcp_state.so.1"', f'"{library}"'))
            self.ini |= {"ffi.preload": self.dir / "mcp_state.ffi.h"}
        else:
            self.ini |= {"mcp_state.library": library}
        super().prepare()


class Client:
    def __init__(self, web: Nginx) -> None:
        self.web = web

    def open(self, query: str, body: str | None = None):
        return urllib.request.urlopen(f"{self.web.url}/?{query}", body.encode() if body else None, timeout=60)

    def text(self, query: str, body: str | None = None) -> str:
        with self.open(query, body) as response:
            return response.read().decode()

    def answer(self, asked: dict, payload: str) -> str:
        return self.text(f"do=answer&session={asked['session']}&id={asked['id']}", payload)


class FfiUnderFpm(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        modules = subprocess.run([program("PHP_FPM", "php-fpm"), "-m"], capture_output=True, text=True).stdout
        for module in ("FFI", "Zend OPcache"):
            if module not in modules.splitlines():
                raise unittest.SkipTest(f"php-fpm has no {module}")

    def serve(self, **options) -> tuple[FfiFpm, Client]:
        fpm = self.enter(FfiFpm(**options))
        return fpm, Client(self.enter(Nginx(fpm)))

    def enter(self, context):
        entered = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return entered

    def assert_served(self, client: Client, scope: bool) -> None:
        told = json.loads(client.text("do=tell"))
        self.assertEqual("McpState\\Ffi\\Engine", told["backend"])
        self.assertEqual(scope, told["preload"] != "")
        self.assertEqual(1, len(told["libraries"]), told)

        # Two workers: one waits on its stream, the other brings the answer.
        with client.open("do=ask") as stream:
            asked = json.loads(stream.readline())
            self.assertEqual("Delivered", client.answer(asked, '"yes"'))
            self.assertEqual('"yes"', stream.read().decode())
        self.assertEqual("Finished", client.answer(asked, '"again"'))

    def test_with_ffi_preload_and_opcache_preload(self) -> None:
        fpm, client = self.serve(scope=True)
        self.assert_served(client, scope=True)
        fpm.reload()
        self.assert_served(client, scope=True)

    def test_with_opcache_preload_and_the_library_named_in_php_ini(self) -> None:
        fpm, client = self.serve(scope=False)
        self.assert_served(client, scope=False)
        fpm.reload()
        self.assert_served(client, scope=False)

    def test_the_owners_of_a_request_that_died_end_while_its_worker_lives(self) -> None:
        fpm, client = self.serve(scope=True)
        workers = fpm.workers()
        asked = json.loads(client.text("do=die"))
        wait_until(lambda: "undefined function no_such_function" in fpm.log(), "the request has died")
        self.assertEqual("Abandoned", client.answer(asked, '"late"'))
        self.assertEqual(workers, fpm.workers())

    def test_ffi_stays_closed_to_all_other_code(self) -> None:
        _, client = self.serve(scope=True)
        self.assertIn("restricted", client.text("do=ffi"))

    def test_without_preloading_the_error_says_what_to_set(self) -> None:
        _, client = self.serve(scope=False, preload=False)
        with self.assertRaises(urllib.error.HTTPError) as missing:
            client.text("do=tell")
        said = missing.exception.read().decode()
        for part in ("extension=mcp_state", "ffi.enable=preload", "opcache.preload", "ffi-preload.php"):
            self.assertIn(part, said)

    def test_with_the_extension_ffi_is_never_used(self) -> None:
        _, client = self.serve(scope=False, extension=EXTENSION)
        told = json.loads(client.text("do=tell"))
        self.assertEqual("McpState\\Native\\Engine", told["backend"])
        self.assertEqual(1, len(told["libraries"]), told)


if __name__ == "__main__":
    unittest.main()
