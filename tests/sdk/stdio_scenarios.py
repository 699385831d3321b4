"""What a client meets on stdin and stdout: questions that expire, calls at the same time, a call that it cancels.

The transport serves one call that waits for the client at a time. Whatever it is handed, each answer belongs to the question it answers.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading

from support import EXTENSION

from lib.servers import program
from scenarios import tool_text


class StdioScenarios:
    """Tests of one server; the subclasses say which."""

    script: str
    env: dict[str, str] = {}

    def setUp(self) -> None:
        command = [program("PHP", "php"), "-d", f"extension={EXTENSION}", str(self.script)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.server = subprocess.Popen(command, env=os.environ | self.env, text=True, **pipes)
        self.addCleanup(self.end)
        # A message that does not come ends the test instead of holding it up.
        deadline = threading.Timer(20, self.server.kill)
        deadline.start()
        self.addCleanup(deadline.cancel)
        self.received: list[dict] = []
        params = {"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}}}
        self.send(id="initialize", method="initialize", params=params | {"clientInfo": {"name": "t", "version": "1"}})
        self.response("initialize")
        self.send(method="notifications/initialized")

    def end(self) -> None:
        self.server.stdin.close()
        self.server.stdout.close()
        self.server.kill()
        self.server.wait()

    def send(self, **message: object) -> None:
        self.server.stdin.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
        self.server.stdin.flush()

    def call(self, id: str, tool: str, **arguments: object) -> None:
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": id}}
        self.send(id=id, method="tools/call", params=params)

    def answer(self, question: dict, text: str) -> None:
        self.send(id=question["id"], result={"action": "accept", "content": {"answer": text}})

    def next(self, wanted) -> dict:
        """The first message that is wanted and was not given before; others wait for their turn."""
        while not (found := [m for m in self.received if wanted(m)]):
            line = self.server.stdout.readline()
            self.assertTrue(line, f"the server has ended; it had sent {self.received}")
            self.received.append(json.loads(line))
        self.received.remove(found[0])
        return found[0]

    def question(self, text: str) -> dict:
        return self.next(lambda m: "method" in m and m.get("params", {}).get("message") == text)

    def response(self, id: str) -> dict:
        return self.next(lambda m: "method" not in m and m.get("id") == id)

    def result(self, id: str) -> str:
        return tool_text(self.response(id))[0]

    def ask(self, word: str, **arguments: object) -> dict:
        self.call(word, "ask", sentinel=word, **arguments)
        return self.question(word)

    def test_a_question_is_answered_on_the_same_pipe_while_other_calls_are_served(self) -> None:
        for word in ("one", "two", "three"):
            question = self.ask(word)
            self.send(id="ping", method="ping")
            self.response("ping")
            self.answer(question, f"to {word}")
            self.assertEqual(f"to {word}", self.result(word))

    def test_progress_is_reported_in_order(self) -> None:
        self.call("count", "count", n=3)
        steps = [self.next(lambda m: m.get("method") == "notifications/progress")["params"]["progress"] for _ in range(3)]
        self.assertEqual([1, 2, 3], steps)
        self.assertEqual("counted to 3", self.result("count"))

    def test_a_question_that_expired_leaves_nothing_to_the_next_ones(self) -> None:
        expired = self.ask("a", timeout=1)
        self.assertEqual("No answer within 1 s.", self.result("a"))
        question = self.ask("b", timeout=3)
        self.answer(expired, "late")
        self.answer(question, "to b")
        self.assertEqual("to b", self.result("b"))
        for word in ("c", "d"):
            self.answer(self.ask(word), f"to {word}")
            self.assertEqual(f"to {word}", self.result(word))
        self.answer(self.ask("thrice", times=3), "1")
        self.answer(self.question("thrice"), "2")
        self.answer(self.question("thrice"), "3")
        self.assertEqual("1 2 3", self.result("thrice"))

    def test_of_two_calls_that_ask_at_once_each_gets_its_own_answer_or_an_error(self) -> None:
        for order in ("ab", "ba"):
            with self.subTest(f"answered in the order {order}"):
                questions = {word: self.ask(word) for word in "ab"}
                for word in order:
                    self.answer(questions[word], f"to {word}")
                self.assertEqual("to b", self.result("b"))
                first = self.result("a")
                self.assertTrue(first == "to a" or "given up this request" in first, first)
        self.answer(self.ask("c"), "to c")
        self.assertEqual("to c", self.result("c"))

    def test_a_call_that_asks_while_an_earlier_question_expires_gets_its_own_answer(self) -> None:
        self.ask("a", timeout=1)
        question = self.ask("b", timeout=30)
        self.response("a")
        self.call("count", "echo", sentinel="one second later", delay_ms=1100)
        self.assertEqual("one second later", self.result("count"))
        self.answer(question, "to b")
        self.assertEqual("to b", self.result("b"))

    def test_a_call_that_is_cancelled_ends_and_its_tool_hears_why(self) -> None:
        cancelled = self.ask("a")
        self.send(method="notifications/cancelled", params={"requestId": "a", "reason": "enough"})
        self.assertIn("the client has cancelled the request", self.result("a"))
        question = self.ask("b")
        self.answer(cancelled, "late")
        self.send(method="notifications/cancelled", params={"requestId": "unknown"})
        self.answer(question, "to b")
        self.assertEqual("to b", self.result("b"))
