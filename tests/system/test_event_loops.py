"""What docs/guides/swoole.md tells people to copy for event loops works in one process with several open questions."""

from __future__ import annotations

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from lib.servers import DEADLINE, EXTENSION, ROOT, program
from test_guides import blocks

PLACES = [os.environ.get("REVOLT_AUTOLOAD", ""), str(ROOT / "php/vendor/autoload.php"), "/usr/share/php/Revolt/autoload.php"]

# Two tools ask in fibers of their own; the answers come in the other order, the second before the first; a third expires.
TEST = r"""
namespace Shop;

require $argv[1];
require $argv[2];

%s

use McpState\{OwnerKind, Store};

$store = Store::open('memory://');
$session = $store->createSession();
$written = $ended = [];
$asks = static function (string $name, int $timeoutMs) use ($session, &$written, &$ended): void {
    $owner = $session->attach(OwnerKind::Stream);
    $request = ['jsonrpc' => '2.0', 'method' => 'elicitation/create', 'params' => ['message' => $name]];
    $write = static function (string $body) use ($name, &$written): void {
        $written[$name] = json_decode($body, true)['id'];
    };
    $claim = ask($owner, $request, $timeoutMs, $write);
    $owner->detach();
    $ended[] = [$name, $claim->status->name, $claim->json()];
};
foreach (['first' => 20_000, 'second' => 20_000, 'silent' => 100] as $name => $timeoutMs) {
    EventLoop::queue($asks, $name, $timeoutMs);
}
$answers = EventLoop::repeat(0.01, static function (string $self) use ($session, &$written, &$ended): void {
    if (count($ended) === 1 && isset($written['second'])) {
        $session->deliverResponse($written['second'], '{"to":"second"}');
        $written['second'] = null;
    }
    if (count($ended) === 2 && isset($written['first'])) {
        $session->deliverResponse($written['first'], '{"to":"first"}');
        $written['first'] = null;
    }
    if (count($ended) === 3) {
        EventLoop::cancel($self);
    }
});
EventLoop::run();
echo json_encode([$ended, $session->stats()['owners'], count($session->allPending())]);
"""


class Revolt(unittest.TestCase):
    def test_questions_of_one_process_get_their_own_answers_in_any_order(self) -> None:
        autoload = next((place for place in PLACES if place and Path(place).is_file()), None)
        if autoload is None or self.php(f"require $argv[1]; exit((int) !class_exists('Revolt\\EventLoop'));", autoload).returncode:
            self.skipTest("no Revolt: no Debian package has it; REVOLT_AUTOLOAD=… names its autoloader")
        (code,) = [block for block in blocks("swoole.md", "php") if "function ask(" in block]
        done = self.php(TEST % code, autoload, str(ROOT / "php/autoload.php"))
        expected = (
            '[[["silent","TimedOut",null],["second","Answered",{"to":"second"}],["first","Answered",{"to":"first"}]],0,0]'
        )
        self.assertEqual((expected, ""), (done.stdout, done.stderr))

    def php(self, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        with tempfile.NamedTemporaryFile("w", suffix=".php") as file:
            file.write(f"<?php\n{code}")
            file.flush()
            command = [program("PHP", "php"), "-n", "-d", f"extension={EXTENSION}", "-d", "display_errors=stderr", file.name]
            return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=DEADLINE)


if __name__ == "__main__":
    unittest.main()
