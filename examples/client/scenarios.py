"""Scenarios in which concurrent clients use a session. Each scenario is a function.

Every call has a unique sentinel, which reveals the answer of another call. A scenario fills a Tally with the number of
right outcomes and the kinds of wrong ones. No scenario can hang: the timeouts in Options bound each wait, and a wait that
reaches its bound counts as timed out.

The *wait* of a right call is the avoidable part of its time: for `echo`, the time beyond its delay; for a question, the
time from the answer of the client to the result.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from mcpclient import HttpError, McpClient, Question, Reply

_sentinels = itertools.count(1)


@dataclass
class Options:
    """The URL of the server, and the timeouts in seconds."""

    url: str
    call_timeout: float = 10.0
    """The time after which a call without an answer has timed out."""
    ask_timeout: float = 8.0
    """The time after which a question times out on the server."""
    question_timeout: float = 5.0
    """The time after which a question that has not reached the client counts as missing."""
    headers: dict[str, str] = field(default_factory=dict)
    random: random.Random = field(default_factory=random.Random)
    sees_processes: bool = True
    """Whether the server detects a dead process at once. With several machines, it detects only the end of the lease."""
    size: int = 0
    """The number of calls for scenarios of variable size; 0: the default of the scenario."""

    def client(self) -> McpClient:
        return McpClient(self.url, timeout=self.call_timeout, headers=self.headers)


class Verdict(Enum):
    RIGHT = "right"
    LOST = "lost"
    SWAPPED = "swapped"
    TIMED_OUT = "timed out"
    ERROR = "error"


@dataclass
class Tally:
    """The outcomes of a scenario."""

    right: int = 0
    lost: int = 0
    """Calls without an answer: an empty reply, or a stream that ended without one."""
    swapped: int = 0
    """Calls that received another call's answer, alone or together with their own."""
    timed_out: int = 0
    """Calls without an answer in time, or whose question timed out on the server although it was answered."""
    errors: int = 0
    """Calls that received an error instead of the answer."""
    strayed: int = 0
    """Questions and notifications on the wrong stream. The calls themselves may still be right."""
    wall: list[float] = field(default_factory=list)
    """The duration of each run in seconds."""
    waits: list[float] = field(default_factory=list)
    """The wait of each right call in seconds."""
    remarks: list[str] = field(default_factory=list)
    """Descriptions of the wrong outcomes."""

    @property
    def total(self) -> int:
        return self.right + self.lost + self.swapped + self.timed_out + self.errors

    @property
    def is_right(self) -> bool:
        return self.total > 0 and self.right == self.total and self.strayed == 0

    def count(self, verdict: Verdict, remark: str = "") -> None:
        match verdict:
            case Verdict.RIGHT:
                self.right += 1
            case Verdict.LOST:
                self.lost += 1
            case Verdict.SWAPPED:
                self.swapped += 1
            case Verdict.TIMED_OUT:
                self.timed_out += 1
            case Verdict.ERROR:
                self.errors += 1
        if verdict is not Verdict.RIGHT:
            self.remark(f"{verdict.value}: {remark}")

    def check(self, holds: bool, remark: str) -> None:
        """Counts a condition that must hold."""
        self.count(Verdict.RIGHT if holds else Verdict.ERROR, remark)

    def remark(self, text: str) -> None:
        if len(self.remarks) < 20:
            self.remarks.append(text)

    def add(self, other: Tally) -> None:
        for name in ("right", "lost", "swapped", "timed_out", "errors", "strayed", "wall", "waits"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for text in other.remarks:
            self.remark(text)

    def wait_quantile(self, q: float) -> float | None:
        """Returns the wait, in seconds, that a share $q of the calls did not exceed."""
        waits = sorted(self.waits)
        return waits[min(len(waits) - 1, int(q * len(waits)))] if waits else None


Scenario = Callable[[Options, Tally], Awaitable[None]]
SCENARIOS: dict[str, tuple[str, Scenario]] = {}
"""The title and the function of each scenario, by id."""


def scenario(id: str, title: str) -> Callable[[Scenario], Scenario]:
    def register(function: Scenario) -> Scenario:
        SCENARIOS[id] = (title, function)
        return function

    return register


async def run(id: str, options: Options) -> Tally:
    """Runs the scenario $id once. A failure that ends the scenario early (such as a refused session) counts as one error."""
    tally = Tally()
    started = time.perf_counter()
    try:
        await SCENARIOS[id][1](options, tally)
    except (HttpError, asyncio.TimeoutError) as error:
        tally.count(Verdict.ERROR, f"the scenario broke off: {error!r}")
    if not tally.wall:
        tally.wall.append(time.perf_counter() - started)
    return tally


# Judging


def sentinel(prefix: str) -> str:
    return f"{prefix}-{next(_sentinels)}"


def tool_text(response: dict[str, object]) -> tuple[str, bool]:
    """Returns the text of a tool's result, and whether it is an error of the tool or of JSON-RPC."""
    if "error" in response:
        return json.dumps(response["error"]), True
    result = response.get("result")
    content = result.get("content") if isinstance(result, dict) else None
    if not content:
        return json.dumps(result), True
    return str(content[0].get("text")), bool(result.get("isError"))


def judge(id: int | str, reply: Reply, expected: str) -> tuple[Verdict, str]:
    """Judges $reply as the reply to the call $id, which must return $expected."""
    seen = f"HTTP {reply.status} {[m.get('method') or m.get('result') or m.get('error') for m in reply.messages]} {reply.broken}"
    if reply.timed_out:
        return Verdict.TIMED_OUT, f"{expected}: no answer in {reply.seconds:.1f} s; {seen}"
    responses = reply.responses()
    own = reply.response(id)
    if reply.status >= 400:
        return Verdict.ERROR, f"{expected}: {seen}"
    if own is None and not responses:
        return Verdict.LOST, f"{expected}: {seen}"
    if own is None or reply.is_array or len(responses) > 1:
        return Verdict.SWAPPED, f"{expected}: {seen}"
    text, is_error = tool_text(own)
    if text == expected and not is_error:
        return Verdict.RIGHT, ""
    if is_error:
        return (Verdict.TIMED_OUT if text.startswith("No answer within") else Verdict.ERROR), f"{expected}: {text}"
    return Verdict.SWAPPED, f"{expected}: got {text}"


async def echo(client: McpClient, tally: Tally, *, delay: float = 0.0, id: int | str | None = None) -> None:
    """Calls `echo` with a unique sentinel and counts the outcome."""
    word = sentinel("echo")
    delay_ms = int(delay * 1000)
    id, reply = await client.call("echo", {"sentinel": word, "delay_ms": delay_ms}, id=id)
    verdict, remark = judge(id, reply, word)
    tally.count(verdict, remark)
    if verdict is Verdict.RIGHT:
        tally.waits.append(reply.seconds - delay_ms / 1000)


class Ask:
    """A running call of `ask`."""

    def __init__(
        self, client: McpClient, options: Options, *, timeout: float | None = None, id: int | None = None
    ) -> None:
        self.client = client
        self.options = options
        self.word = sentinel("ask")
        self.id = client.next_id() if id is None else id
        self._question: Question | None = None
        arguments = {"sentinel": self.word, "timeout": options.ask_timeout if timeout is None else timeout}
        self._call = asyncio.create_task(client.call("ask", arguments, id=self.id))

    async def question(self) -> Question | None:
        """Waits for the question; None if it does not arrive or its call ends first."""
        asked = asyncio.create_task(self.client.question(self.word, self.options.question_timeout))
        await asyncio.wait({asked, self._call}, return_when=asyncio.FIRST_COMPLETED)
        if not asked.done() and self._call.done():
            # The question may still arrive on another call's stream.
            await asyncio.wait({asked}, timeout=0.2)
        if asked.done():
            with contextlib.suppress(asyncio.TimeoutError):
                self._question = asked.result()
        asked.cancel()
        return self._question

    async def answer(self) -> Reply | None:
        """Waits for the question and answers it. Returns the reply to the answer."""
        question = self._question or await self.question()
        return None if question is None else await question.answer()

    async def reply(self) -> Reply:
        return (await self._call)[1]

    def leave(self) -> None:
        """Closes the connection like a client that is killed."""
        self._call.cancel()

    @property
    def is_over(self) -> bool:
        return self._call.done()

    async def count(self, tally: Tally) -> None:
        """Waits for the result and counts it. A question on another call's stream has strayed."""
        reply = await self.reply()
        verdict, remark = judge(self.id, reply, self.word)
        tally.count(verdict, remark)
        self._count_stray(tally)
        if verdict is Verdict.RIGHT and self._question is not None:
            tally.waits.append(reply.finished - self._question.answered)

    async def count_timeout(self, tally: Tally) -> None:
        """Waits for the result, which must be the server's timeout, and counts it."""
        reply = await self.reply()
        verdict, remark = judge(self.id, reply, self.word)
        if verdict is Verdict.TIMED_OUT and not reply.timed_out:
            tally.count(Verdict.RIGHT)
        elif verdict is Verdict.RIGHT:
            tally.count(Verdict.ERROR, f"{self.word}: answered, but must have timed out")
        else:
            tally.count(verdict, remark)
        self._count_stray(tally)

    def _count_stray(self, tally: Tally) -> None:
        if self._question is not None and self._question.call != self.id:
            tally.strayed += 1
            tally.remark(f"{self.word}: the question came on the stream of call {self._question.call}, not {self.id}")


# A and B: parallel plain calls


async def parallel_echoes(options: Options, tally: Tally, n: int, longest: float, same_id: bool = False) -> None:
    async with options.client() as client:
        started = time.perf_counter()
        await asyncio.gather(
            *(
                echo(client, tally, delay=options.random.uniform(0, longest), id=1 if same_id else None)
                for _ in range(options.size or n)
            )
        )
        tally.wall.append(time.perf_counter() - started)


@scenario("A12", "12 parallel calls, 0-200 ms")
async def a12(options: Options, tally: Tally) -> None:
    await parallel_echoes(options, tally, 12, 0.2)


@scenario("A50", "50 parallel calls, 0-200 ms")
async def a50(options: Options, tally: Tally) -> None:
    await parallel_echoes(options, tally, 50, 0.2)


@scenario("A12z", "12 parallel calls, no delay")
async def a12z(options: Options, tally: Tally) -> None:
    await parallel_echoes(options, tally, 12, 0.0)


@scenario("A50z", "50 parallel calls, no delay")
async def a50z(options: Options, tally: Tally) -> None:
    await parallel_echoes(options, tally, 50, 0.0)


@scenario("B12", "12 parallel calls, all with id 1")
async def b12(options: Options, tally: Tally) -> None:
    await parallel_echoes(options, tally, 12, 0.2, same_id=True)


@scenario("B50", "50 parallel calls, all with id 1")
async def b50(options: Options, tally: Tally) -> None:
    await parallel_echoes(options, tally, 50, 0.2, same_id=True)


# C: several questions open at once


async def thinking(options: Options) -> None:
    """Waits like a user who thinks, so that the answer reaches a polling server at a random point of its interval."""
    await asyncio.sleep(options.random.uniform(0, 0.1))


async def two_asks(options: Options, tally: Tally, answer: Callable[[Ask, Ask], Awaitable[None]]) -> None:
    """A asks, then B asks. $answer decides when each receives its answer."""
    async with options.client() as client:
        a = Ask(client, options)
        await a.question()
        await thinking(options)
        b = Ask(client, options)
        await b.question()
        await thinking(options)
        await answer(a, b)
        await asyncio.gather(a.count(tally), b.count(tally))


@scenario("C-AB", "two questions open, first answered first")
async def c_ab(options: Options, tally: Tally) -> None:
    async def answer(a: Ask, b: Ask) -> None:
        await a.answer()
        await asyncio.sleep(0.15)
        await b.answer()

    await two_asks(options, tally, answer)


@scenario("C-BA", "two questions open, second answered first")
async def c_ba(options: Options, tally: Tally) -> None:
    async def answer(a: Ask, b: Ask) -> None:
        await b.answer()
        await asyncio.sleep(0.15)
        await a.answer()

    await two_asks(options, tally, answer)


@scenario("C-BAtight", "second answered at once, first 150 ms later")
async def c_ba_tight(options: Options, tally: Tally) -> None:
    async with options.client() as client:
        a = Ask(client, options)
        await a.question()
        await thinking(options)
        b = Ask(client, options)
        await b.answer()
        await asyncio.sleep(0.15)
        await a.answer()
        await asyncio.gather(a.count(tally), b.count(tally))


async def many_asks(options: Options, tally: Tally, n: int) -> None:
    async with options.client() as client:
        asks = [Ask(client, options) for _ in range(n)]
        await asyncio.gather(*(ask.answer() for ask in asks))
        await asyncio.gather(*(ask.count(tally) for ask in asks))
        ids = [question.id for question in client.questions]
        if len(ids) != len(set(ids)):
            tally.strayed += len(ids) - len(set(ids))
            tally.remark(f"questions share an id: {ids}")


@scenario("C-sim", "two questions asked at the same instant")
async def c_sim(options: Options, tally: Tally) -> None:
    await many_asks(options, tally, 2)


@scenario("C-many", "8 parallel questions, each answered at once")
async def c_many(options: Options, tally: Tally) -> None:
    await many_asks(options, tally, options.size or 8)


# D: questions that expire


@scenario("D-silent", "a question expires unanswered; the next is answered")
async def d_silent(options: Options, tally: Tally) -> None:
    async with options.client() as client:
        expiring = Ask(client, options, timeout=1)
        await expiring.count_timeout(tally)
        later = Ask(client, options)
        await later.answer()
        await later.count(tally)


@scenario("D-late", "a question expires, its answer comes late; the next is answered")
async def d_late(options: Options, tally: Tally) -> None:
    async with options.client() as client:
        expiring = Ask(client, options, timeout=1)
        await expiring.question()
        await expiring.count_timeout(tally)
        late = await expiring.answer()
        tally.check(late is not None and late.status == 202, f"a late answer is 202: {late}")
        expect_discarded(late, "TimedOut", tally)
        later = Ask(client, options)
        await later.answer()
        await later.count(tally)


@scenario("D-both", "one question is answered in the moment another expires")
async def d_both(options: Options, tally: Tally) -> None:
    async with options.client() as client:
        a = Ask(client, options)
        await a.question()
        started = time.perf_counter()
        b = Ask(client, options, timeout=1)
        await b.question()
        await asyncio.sleep(started + 1 + options.random.uniform(-0.01, 0.01) - time.perf_counter())
        await a.answer()
        await asyncio.gather(a.count(tally), b.count_timeout(tally))


def expect_discarded(reply: Reply | None, reason: str, tally: Tally) -> None:
    """Checks that the answer was discarded for $reason, if the server reports its log in a header (the tests' does)."""
    log = None if reply is None else reply.headers.get("x-test-log")
    if log is not None:
        tally.check(log.endswith(f": {reason}"), f"the answer must be discarded as {reason}, the log says: {log}")


# E and K: notifications beside other calls


@scenario("E", "60 notifications on a stream beside three callers")
async def e(options: Options, tally: Tally) -> None:
    n = options.size or 60
    async with options.client() as client:
        done = asyncio.Event()

        async def caller() -> None:
            while not done.is_set():
                await echo(client, tally)

        callers = [asyncio.create_task(caller()) for _ in range(3)]
        id, reply = await client.call("count", {"n": n, "delay_ms": 5}, progress=True)
        done.set()
        await asyncio.gather(*callers)
        count_progress(id, reply, n, tally)
        tally.count(*judge(id, reply, f"counted to {n}"))


def count_progress(id: int | str, reply: Reply, n: int, tally: Tally) -> None:
    """Checks that each of the $n steps arrived once, in order, on the call's own stream, with its token."""
    steps = reply.notifications("notifications/progress")
    seen = [step["params"]["progress"] for step in steps if step["params"]["progressToken"] == f"progress-{id}"]
    for i in range(1, n + 1):
        if i in seen:
            tally.count(Verdict.RIGHT)
        else:
            tally.count(Verdict.LOST, f"notification {i} of {n}")
    tally.strayed += len(steps) - len(seen)
    if seen != sorted(set(seen)):
        tally.count(Verdict.SWAPPED, f"notifications doubled or out of order: {seen}")


@scenario("K", "progress is reported while another stream waits")
async def k(options: Options, tally: Tally) -> None:
    n = options.size or 10
    async with options.client() as client:
        ask = Ask(client, options)
        await ask.question()
        id, reply = await client.call("count", {"n": n}, progress=True, timeout=options.question_timeout)
        count_progress(id, reply, n, tally)
        tally.count(*judge(id, reply, f"counted to {n}"))
        tally.check(not ask.is_over, "the waiting call ended without its answer")
        await ask.answer()
        await ask.count(tally)


# F and R: one question after another


@scenario("F", "answer sent, result arrives: one after another")
async def f(options: Options, tally: Tally) -> None:
    async with options.client() as client:
        for _ in range(options.size or 40):
            ask = Ask(client, options)
            await ask.question()
            await thinking(options)
            await ask.answer()
            await ask.count(tally)


@scenario("R", "1,500 questions, answered at random moments")
async def r(options: Options, tally: Tally) -> None:
    sessions = 10

    async def one_session() -> None:
        async with options.client() as client:
            for _ in range((options.size or 1500) // sessions):
                ask = Ask(client, options)
                await ask.question()
                await thinking(options)
                await ask.answer()
                await ask.count(tally)

    await asyncio.gather(*(one_session() for _ in range(sessions)))


# G: the end of a session


@scenario("G", "DELETE while a stream waits")
async def g(options: Options, tally: Tally) -> None:
    async with options.client() as client:
        ask = Ask(client, options)
        await ask.question()
        status = await client.delete()
        tally.check(status in (200, 204), f"DELETE: HTTP {status}")
        _, ping = await client.request("ping")
        tally.check(ping.status == 404, f"a call after DELETE: HTTP {ping.status}")
        reply = await ask.reply()
        own = reply.response(ask.id)
        tally.check(not reply.timed_out and own is not None and "error" in own, f"the waiting call ends with an error: {reply}")
        _, ping = await client.request("ping")
        tally.check(ping.status == 404, f"a call after the waiting one has ended: HTTP {ping.status}")


# H and N: parallel changes of attributes


async def recall(client: McpClient) -> dict[str, object]:
    """Returns the attributes of the session; empty if the call fails."""
    id, reply = await client.call("recall", {})
    response = reply.response(id)
    text, is_error = ("{}", True) if response is None else tool_text(response)
    kept = {} if is_error else json.loads(text)
    return kept if isinstance(kept, dict) else {}


@scenario("H", "8 parallel calls, each sets another attribute")
async def h(options: Options, tally: Tally) -> None:
    n = options.size or 8
    async with options.client() as client:
        values = {f"key{i}": sentinel("value") for i in range(n)}
        await asyncio.gather(*(client.call("remember", {"key": key, "value": value}) for key, value in values.items()))
        kept = (await recall(client)).get("remembered") or {}
        for key, value in values.items():
            got = kept.get(key) if isinstance(kept, dict) else None
            if got == value:
                tally.count(Verdict.RIGHT)
            else:
                tally.count(Verdict.LOST if got is None else Verdict.SWAPPED, f"{key}: {got}, not {value}")


@scenario("N", "8 parallel subscriptions, then each resource changes")
async def n(options: Options, tally: Tally) -> None:
    uris = [f"note://{sentinel('note')}" for _ in range(options.size or 8)]
    async with options.client() as client:
        await asyncio.gather(*(client.request("resources/subscribe", {"uri": uri}) for uri in uris))
        ask = Ask(client, options)
        await ask.question()
        await asyncio.gather(*(client.call("announce", {"uri": uri}) for uri in uris))
        await ask.answer()
        await ask.count(tally)
        updates = [u["params"]["uri"] for u in (await ask.reply()).notifications("notifications/resources/updated")]
        for uri in uris:
            times = updates.count(uri)
            if times == 1:
                tally.count(Verdict.RIGHT)
            else:
                tally.count(Verdict.LOST if times == 0 else Verdict.SWAPPED, f"{uri}: announced {times} times")


# I: junk


@scenario("I", "answers to nothing: unknown, finished, mistyped ids")
async def i(options: Options, tally: Tally) -> None:
    async with options.client() as client:
        finished = Ask(client, options)
        await finished.answer()
        await finished.count(tally)
        live = Ask(client, options)
        question = await live.question()
        if question is None or finished._question is None:
            tally.count(Verdict.LOST, "a question did not come")
            return
        junk = [
            (int(question.id) + 1_000_003, "Unknown"),
            (finished._question.id, "Finished"),
            (str(question.id), "Unknown"),
            (f"{question.id}.x", "Unknown"),
        ]
        for id, reason in junk:
            reply = await question.answer(sentinel("junk"), id=id)
            tally.check(reply.status == 202 and not reply.messages, f"junk answer to {id!r}: {reply}")
            expect_discarded(reply, reason, tally)
        tally.check(not live.is_over, "junk ended a live question")
        await question.answer()
        await live.count(tally)
        kept = await recall(client)
        tally.check("client_info" in kept and "junk" not in json.dumps(kept), f"junk was stored: {kept}")


# J: a worker is killed


@scenario("J", "kill -9 of a waiting worker, then its answer comes")
async def j(options: Options, tally: Tally) -> None:
    async with options.client() as client:
        bystander = Ask(client, options)
        await bystander.question()
        killed = Ask(client, options)
        question = await killed.question()
        pid = await worker_pid(killed)
        if question is None or pid is None:
            tally.count(Verdict.ERROR, "this server does not say which process serves a call (X-Worker-Pid)")
            return
        os.kill(pid, signal.SIGKILL)
        reply = await killed.reply()
        await process_has_ended(pid, options.question_timeout)
        tally.check(bool(reply.broken) or reply.response(killed.id) is None, f"the killed call has no result: {reply}")
        late = await question.answer()
        tally.check(late.status == 202, f"the answer to a killed call: HTTP {late.status}")
        if options.sees_processes:
            expect_discarded(late, "Abandoned", tally)
        again = Ask(client, options)
        await again.answer()
        await again.count(tally)
        await bystander.answer()
        await bystander.count(tally)


async def worker_pid(ask: Ask) -> int | None:
    reply = ask.client.replies.get(ask.id)
    pid = reply.headers.get("x-worker-pid") if reply is not None else None
    return None if pid is None else int(pid)


async def process_has_ended(pid: int, timeout: float) -> None:
    """Waits until a killed process is dead, a moment after its connections have closed."""
    until = time.perf_counter() + timeout
    while time.perf_counter() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return
        if state in "ZX":
            return
        await asyncio.sleep(0.001)
    raise asyncio.TimeoutError(f"process {pid} outlived its kill")


# L: sustained load


@scenario("L", "16 callers loop for 3 s; is the session alive?")
async def l(options: Options, tally: Tally) -> None:
    async with options.client() as client:
        until = time.perf_counter() + (options.size or 3)

        async def caller() -> None:
            while time.perf_counter() < until:
                await echo(client, tally)

        await asyncio.gather(*(caller() for _ in range(16)))
        _, ping = await client.request("ping")
        tally.check(ping.status == 200, f"the session is dead: HTTP {ping.status}")


# M: expiry


@scenario("M", "sessions idle past their time, and with a stream open")
async def m(options: Options, tally: Tally) -> None:
    """Requires a server with a TTL of 500 ms on request (X-Test-Ttl-Ms), such as the tests' server."""
    idle, busy = options.client(), options.client()
    for client in (idle, busy):
        client.add_headers({"X-Test-Ttl-Ms": "500"})
        await client.initialize()
    ask = Ask(busy, options)
    await ask.question()
    await asyncio.sleep(1.2)
    _, ping = await idle.request("ping")
    tally.check(ping.status == 404, f"a session idle past its time: HTTP {ping.status}")
    _, ping = await busy.request("ping")
    tally.check(ping.status == 200, f"a session with a stream open: HTTP {ping.status}")
    await ask.answer()
    await ask.count(tally)
    await asyncio.sleep(1.2)
    _, ping = await busy.request("ping")
    tally.check(ping.status == 404, f"the same session, idle: HTTP {ping.status}")
    idle.http.close()
    busy.http.close()


# P: many sessions


@scenario("P", "50 clients initialize at once, then call")
async def p(options: Options, tally: Tally) -> None:
    clients = [options.client() for _ in range(options.size or 50)]
    await asyncio.gather(*(client.initialize() for client in clients))
    ids = {client.session_id for client in clients}
    tally.check(len(ids) == len(clients) and None not in ids, f"{len(ids)} ids for {len(clients)} sessions")

    async def calls(client: McpClient) -> None:
        word = sentinel("own")
        await client.call("remember", {"key": "own", "value": word})
        await echo(client, tally, delay=options.random.uniform(0, 0.1))
        kept = (await recall(client)).get("remembered")
        tally.check(kept == {"own": word}, f"a session knows {kept}, not just {word}")
        client.http.close()

    await asyncio.gather(*(calls(client) for client in clients))


# What a lock for each session costs


@scenario("parallel-200ms", "8 parallel calls of 200 ms each")
async def parallel_200ms(options: Options, tally: Tally) -> None:
    async with options.client() as client:
        started = time.perf_counter()
        await asyncio.gather(*(echo(client, tally, delay=0.2) for _ in range(8)))
        tally.wall.append(time.perf_counter() - started)
