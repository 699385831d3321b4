"""The scenarios of examples/client/scenarios.py as they are on the SDK: two differ, one is added."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random

from support import busy_processors

import scenarios
from scenarios import SCENARIOS, Ask, Options, Tally, Verdict, scenario, sentinel

__all__ = ["ONLY_OURS", "SCENARIOS", "SEED", "Scenarios", "repeat"]

ONLY_OURS = ("I", "J", "M", "Q")
"""They look at what the SDK's own store does not say, or has not: why an answer is discarded, lives in milliseconds,
a call that is cancelled."""


@scenario("N", "8 parallel subscriptions")
async def subscriptions(options: Options, tally: Tally) -> None:
    """In place of the example server's: no tool of the SDK announces a change to other streams."""
    uris = [f"note://{sentinel('note')}" for _ in range(options.size or 8)]
    async with options.client() as client:
        await asyncio.gather(*(client.request("resources/subscribe", {"uri": uri}) for uri in uris))
        kept = (await scenarios.recall(client)).get("resource_subscriptions") or {}
        for uri in uris:
            tally.count(Verdict.RIGHT if uri in kept else Verdict.LOST, f"{uri}: kept are {kept}")


@scenario("G", "DELETE while a stream waits")
async def delete(options: Options, tally: Tally) -> None:
    """As the example server's, but that the SDK hands the error to the tool, whose result then says it."""
    async with options.client() as client:
        ask = Ask(client, options)
        await ask.question()
        status = await client.delete()
        tally.check(status in (200, 204), f"DELETE: HTTP {status}")
        _, ping = await client.request("ping")
        tally.check(ping.status == 404, f"a call after DELETE: HTTP {ping.status}")
        reply = await ask.reply()
        own = reply.response(ask.id)
        is_error = own is not None and scenarios.tool_text(own)[1]
        tally.check(not reply.timed_out and is_error, f"the waiting call ends with an error: {reply}")
        _, ping = await client.request("ping")
        tally.check(ping.status == 404, f"a call after the waiting one has ended: HTTP {ping.status}")


@scenario("D-inner", "an ask expires; another tool asks twice")
async def ask_twice(options: Options, tally: Tally) -> None:
    """Within one call, a second question gets its own answer, and nothing of what timed out before."""
    async with options.client() as client:
        expiring = Ask(client, options, timeout=1)
        await expiring.count_timeout(tally)
        word = sentinel("twice")
        call = asyncio.create_task(client.call("ask", {"sentinel": word, "timeout": options.ask_timeout, "times": 2}))
        for i in range(2):
            await wait_for_questions(client, word, i + 1, options.question_timeout)
            question = [q for q in client.questions if q.text == word][i:]
            if not question:
                break
            await question[0].answer()
        id, reply = await call
        tally.count(*scenarios.judge(id, reply, f"{word} {word}"))


@scenario("Q", "the client cancels a call that waits for it")
async def cancelled_call(options: Options, tally: Tally) -> None:
    """The call ends with an error that says so, beside another that waits on; its answer is late, and the next call gets its own."""
    async with options.client() as client:
        cancelled, other = Ask(client, options), Ask(client, options)
        question = await cancelled.question()
        await other.question()
        await client.notify("notifications/cancelled", {"requestId": cancelled.id, "reason": "enough"})
        reply = await cancelled.reply()
        own = reply.response(cancelled.id)
        text = "" if own is None else scenarios.tool_text(own)[0]
        tally.check("the client has cancelled the request" in text, f"the call ends with the cancellation: {reply}")
        if question is not None:
            await question.answer()
        again = Ask(client, options)
        for ask in (other, again):
            await ask.answer()
            await ask.count(tally)


@scenario("C-batch", "a JSON batch of two calls that ask")
async def batch(options: Options, tally: Tally) -> None:
    """The last gets its own answer. The SDK's transport lets go of the first, which is told so; whoever serves it is right, too."""
    async with options.client() as client:
        calls = {client.next_id(): sentinel("batch") for _ in range(2)}
        (first, first_word), (last, word) = calls.items()
        messages = [
            {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "ask", "arguments": {"sentinel": text}}}
            for id, text in calls.items()
        ]
        post = asyncio.create_task(client.post(messages, options.call_timeout))
        for text in (first_word, word):
            await wait_for_questions(client, text, 1, options.question_timeout)
            for question in [q for q in client.questions if q.text == text]:
                await question.answer()
        reply = await post
        own = reply.response(last)
        text, is_error = ("", True) if own is None else scenarios.tool_text(own)
        tally.check(text == word and not is_error, f"the last of the batch gets its own answer: {reply}")
        own = reply.response(first)
        text = "" if own is None else scenarios.tool_text(own)[0]
        tally.check(text == first_word or "given up this request" in text, f"the first is answered or told so: {reply}")


async def wait_for_questions(client: scenarios.McpClient, text: str, count: int, seconds: float) -> None:
    """Until $count questions with this text have come, or $seconds have passed."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while sum(q.text == text for q in client.questions) < count and loop.time() < end:
        await asyncio.sleep(0.005)


async def repeat(id: str, options: Options, runs: int) -> Tally:
    """Several runs of one scenario."""
    tally = Tally()
    for _ in range(runs):
        tally.add(await scenarios.run(id, options))
    return tally


# Where a few seconds are not enough for two runs: the number by default.
FEWER = {"F": 1, "R": 1, "L": 1, "M": 1, "P": 1}
SEED = int(os.environ.get("SCENARIO_SEED", "1"))


class Scenarios:
    """A test for each scenario, SCENARIO_RUNS times; the subclasses say on which server."""

    processors_kept_busy = 0
    url: str

    @classmethod
    def served(cls) -> contextlib.AbstractContextManager[tuple[str, object]]:
        """The server, and its URL."""
        raise NotImplementedError

    @classmethod
    def setUpClass(cls) -> None:
        stack = contextlib.ExitStack()
        cls.addClassCleanup(stack.close)
        cls.url, _ = stack.enter_context(cls.served())
        stack.enter_context(busy_processors(cls.processors_kept_busy))

    def comes_right(self, id: str) -> None:
        runs = int(os.environ.get("SCENARIO_RUNS", FEWER.get(id, 2)))
        size = 100 if id == "R" and "SCENARIO_RUNS" not in os.environ else 0
        options = Options(
            self.url,
            call_timeout=60,
            ask_timeout=50,
            question_timeout=40,
            random=random.Random(f"{SEED} {id}"),
            size=size,
        )
        tally = asyncio.run(repeat(id, options, runs))
        if not tally.is_right:
            raise AssertionError(f"{id}: {tally.right} of {tally.total} right, {tally.strayed} strayed", *tally.remarks)


for _id, (_title, _) in SCENARIOS.items():

    def _test(self: Scenarios, id: str = _id) -> None:
        self.comes_right(id)

    _test.__doc__ = f"{_id}: {_title}"
    setattr(Scenarios, f"test_{_id.replace('-', '_')}", _test)
