"""What many users do to a server at once, and whether each of them got what was theirs.

A *user* opens one session after another and does random things in it; the same seed gives the same decisions. Every value
carries a word of its own, so what belongs to somebody else is seen. Workers die meanwhile, and that must be all that anybody
notices: an exchange may break off without an answer only if a worker was killed while it was open, and each kill
excuses one exchange (a php-fpm worker serves one at a time). Whatever such an exchange was to change may have been changed or not; from
then on both are right. All else that is not as it must be is *wrong*.

A question's outcome follows from what the server said of its answer: accepted, and the tool returns it; discarded, and the
tool says that nobody answered. So a slow machine makes nothing wrong.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import random
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from mcpclient import HttpError, McpClient, Question, Reply
from scenarios import Ask, Options, tool_text

REMARKS = 50
"""So many wrong things are remembered in words; all are counted."""
WAITS = 1_000_000
TOPICS = ("news", "prices", "weather")
SIZES = (10, 1_000, 20_000, 150_000)
"""Bytes of the values that sessions keep."""
KEYS = ("a", "b", "c", "d")
ASK_TIMEOUT = 5.0
"""Seconds until the server gives up a question that is answered at once. A graceful reload of php-fpm lets streams end
before it serves anything new, answers included: it takes so long."""
CALL_TIMEOUT = 60.0
ONCE_TTL = 10.0


def now() -> float:
    """Seconds, on the clock of Reply.finished."""
    return time.perf_counter()


@dataclass
class Ledger:
    """What came of everything."""

    done: Counter[str] = field(default_factory=Counter)
    """Things that came right, by name."""
    noted: Counter[str] = field(default_factory=Counter)
    """Things that are allowed and worth knowing."""
    errors: Counter[str] = field(default_factory=Counter)
    """Things that were wrong, by kind."""
    remarks: list[str] = field(default_factory=list)
    cuts: list[tuple[float, float, str]] = field(default_factory=list)
    """Exchanges that broke off: from when, until when, what it was."""
    kills: list[tuple[float, float]] = field(default_factory=list)
    """When workers were killed: from just before until they were dead."""
    reloads: list[tuple[float, float]] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    """Seconds from sending an answer until the result of the call that asked was there."""

    def right(self, what: str, count: int = 1) -> None:
        self.done[what] += count

    def note(self, what: str) -> None:
        self.noted[what] += 1

    def wrong(self, kind: str, remark: str) -> None:
        self.errors[kind] += 1
        if len(self.remarks) < REMARKS:
            self.remarks.append(f"{kind}: {remark[:500]}")

    def check(self, holds: bool, what: str, kind: str, remark: str) -> bool:
        if holds:
            self.right(what)
        else:
            self.wrong(kind, f"{what}: {remark}")
        return holds

    def settle(self) -> None:
        """Counts the broken exchanges that no kill excuses."""
        excused, left = match(self.cuts, self.kills)
        self.noted["broken off by a kill"] = excused
        for _, _, what in left:
            self.wrong("lost", f"{what}: broke off, and no worker was killed then")
        self.cuts.clear()


def match(cuts: list[tuple[float, float, str]], kills: list[tuple[float, float]]) -> tuple[int, list[tuple[float, float, str]]]:
    """Gives each kill at most one broken exchange that was open then. How many it excused, and the others."""
    left = sorted(cuts, key=lambda cut: cut[1])
    excused = 0
    for before, after in sorted(kills):
        # Of those open at that moment the one that ended first: the others may have a later kill.
        found = next((cut for cut in left if cut[0] <= after and before <= cut[1]), None)
        if found is not None:
            left.remove(found)
            excused += 1
    return excused, left


class Bus:
    """What is known of the bus: which message has which number. Of each topic the latest."""

    KEPT = 2_000

    def __init__(self, ring: int) -> None:
        """`ring`: how many messages the store keeps of a topic."""
        self.ring = ring
        self.messages: dict[str, OrderedDict[int, str]] = {topic: OrderedDict() for topic in TOPICS}

    def saw(self, topic: str, number: int, message: str) -> bool:
        """Whether everybody sees this message under this number."""
        known = self.messages[topic]
        if known.setdefault(number, message) != message:
            return False
        while len(known) > self.KEPT:
            known.popitem(last=False)
        return True

    def newest(self, topic: str) -> int:
        return max(self.messages[topic], default=0)


class Over(Exception):
    """The session has ended for this user."""


class Visit:
    """One user's session."""

    def __init__(self, load: Load, rng: random.Random, ttl: float) -> None:
        self.load = load
        self.ledger = load.ledger
        self.rng = rng
        self.ttl = ttl
        self.client = McpClient(load.url, timeout=CALL_TIMEOUT, headers={"X-Test-Ttl-Ms": str(int(ttl * 1000))})
        self.used = 0.0
        """When the last exchange began that reached the session."""
        self.uses: list[tuple[float, float]] = []
        """When each exchange that reached it began and ended."""
        self.known: dict[str, set[str | None]] = {}
        """What the session keeps: the values that each key may have."""
        self.cursors: dict[str, int] = {}
        self.is_destroyed = False
        self.has_left = False
        """Whether a stream was broken off, by either side: what it had taken, and takes until its worker notices, nobody reads."""
        self.announced: list[str] = []
        """Broadcasts of this session."""

    # -- judging

    def came(self, what: str, reply: Reply, started: float) -> bool:
        """Whether a whole reply came that is no refusal; else it is counted as what it is."""
        if reply.timed_out:
            self.ledger.wrong("no answer", f"{what}: none in {reply.seconds:.0f} s")
        elif reply.broken or reply.status in (0, 502):
            self.has_left = True
            self.ledger.cuts.append((started, reply.finished, f"{what}: HTTP {reply.status} {reply.broken}"))
        elif reply.status == 404 and self.is_destroyed:
            raise Over
        elif reply.status == 404:
            # Its time may run down to three quarters of the TTL between two uses: not every use is written. A use that had not
            # ended says nothing: of two at the moment of expiry one may find the session and the other not.
            used = max((begun for begun, ended in self.uses if ended <= started), default=0.0)
            idle = reply.finished - used
            if idle < 0.75 * self.ttl:
                self.ledger.wrong("session lost", f"{what}: 404 after {idle:.1f} s of {self.ttl:g} s")
            else:
                self.ledger.note("session expired before its next use")
            raise Over
        elif reply.status >= 400:
            self.ledger.wrong(f"HTTP {reply.status}", f"{what}: {reply.messages}")
        else:
            self.used = max(self.used, started)
            self.uses.append((started, reply.finished))
            return True
        return False

    def own(self, what: str, id: object, reply: Reply, started: float) -> dict[str, object] | None:
        """The response to the call `id`, alone in its reply; None when it is counted already."""
        if not self.came(what, reply, started):
            return None
        responses = reply.responses()
        if len(responses) == 1 and responses[0].get("id") == id and not reply.is_array:
            return responses[0]
        kind = "lost" if not responses else "swapped"
        self.ledger.wrong(kind, f"{what}: call {id} got HTTP {reply.status} {reply.messages}")
        return None

    async def text(self, what: str, tool: str, arguments: dict[str, object], **options: object) -> str | None:
        """The text that a tool returns; None when none came, which is counted."""
        started = now()
        id, reply = await self.client.call(tool, arguments, **options)
        response = self.own(what, id, reply, started)
        if response is None:
            return None
        text, is_error = tool_text(response)
        if is_error:
            self.ledger.wrong("error", f"{what}: {text}")
            return None
        return text

    # -- beginning and end

    async def begin(self) -> bool:
        started = now()
        try:
            await self.client.initialize()
        except HttpError as error:
            self.used = started
            if any(sign in str(error) for sign in ("HTTP 502", "HTTP 0 ", "the connection closed")):
                self.ledger.cuts.append((started, now(), f"initialize: {error}"))
            else:
                self.ledger.wrong("error", f"initialize: {error}")
            return False
        self.used = started
        self.ledger.right("initialize")
        return True

    async def destroy(self) -> None:
        """DELETE; afterwards nobody finds the session."""
        started = now()
        self.is_destroyed = True
        try:
            status = await self.client.delete()
        except (HttpError, asyncio.TimeoutError) as error:
            self.ledger.cuts.append((started, now(), f"DELETE: {error}"))
            return
        if status == 502:
            self.ledger.cuts.append((started, now(), "DELETE: HTTP 502"))
            return
        if status == 404 and now() - self.used >= 0.75 * self.ttl:
            self.ledger.note("session expired before its next use")
            return
        self.ledger.check(status == 204, "DELETE", "error", f"HTTP {status}")
        started = now()
        id, reply = await self.client.request("ping")
        with contextlib.suppress(Over):
            if self.came("ping after DELETE", reply, started):
                self.ledger.wrong("session came back", f"ping after DELETE: HTTP {reply.status} {reply.messages}")
        if reply.status == 404:
            self.ledger.right("404 after DELETE")

    async def leave_and_return(self) -> None:
        """A session that nobody used for its TTL is gone."""
        await asyncio.sleep(self.ttl + 1)
        started = now()
        _, reply = await self.client.request("ping")
        if reply.status == 404:
            self.ledger.right("404 after expiry")
        elif self.came("ping after expiry", reply, started):
            self.ledger.wrong("session came back", f"{started - self.used:.1f} s after its last use, TTL {self.ttl:g} s")

    # -- plain calls

    async def ping(self) -> None:
        started = now()
        id, reply = await self.client.request("ping")
        response = self.own("ping", id, reply, started)
        if response is not None:
            self.ledger.check(response.get("result") == {}, "ping", "wrong", f"{response}")

    async def list_tools(self) -> None:
        started = now()
        id, reply = await self.client.request("tools/list")
        response = self.own("tools/list", id, reply, started)
        if response is not None:
            self.ledger.check("tools" in json.dumps(response), "tools/list", "wrong", f"{response}")

    async def echo(self, delay: float = 0.0, id: int | None = None, size: int = 0) -> None:
        word = self.load.word("echo") + "x" * size
        text = await self.text("echo", "echo", {"sentinel": word, "delay_ms": int(delay * 1000)}, id=id)
        if text is not None:
            self.ledger.check(text == word, "echo", "swapped", f"{word[:40]} got {text[:40]}")

    async def echoes(self) -> None:
        """Some at once, each with its own delay."""
        await gather(self.echo(self.rng.uniform(0, 0.05), size=self.rng.choice((0, 0, 5_000))) for _ in range(self.rng.randint(2, 4)))

    async def twins(self) -> None:
        """Two at once under one id, as some clients number them."""
        id = self.client.next_id()
        await gather(self.echo(self.rng.uniform(0, 0.05), id=id) for _ in range(2))

    async def slow(self) -> None:
        async with self.load.long:
            await gather([self.echo(self.rng.uniform(0.3, 1.5)), self.ping()])

    async def notify(self) -> None:
        method, params = self.rng.choice([
            ("notifications/roots/list_changed", {}),
            ("notifications/cancelled", {"requestId": 1_000_000, "reason": "no such request"}),
        ])
        started = now()
        reply = await self.client.notify(method, params)
        if self.came("notification", reply, started):
            self.ledger.check(reply.status == 202 and not reply.messages, "notification", "wrong", f"{reply}")

    # -- attributes

    async def remember(self) -> None:
        """Some at once, of several sizes, each another key."""

        async def one(key: str) -> None:
            value = self.load.word("value").ljust(self.rng.choice(SIZES), ".")
            before = self.known.get(key, {None})
            self.known[key] = before | {value}
            text = await self.text("remember", "remember", {"key": key, "value": value})
            if text is not None and self.ledger.check(text == "remembered", "remember", "swapped", text[:80]):
                self.known[key] = {value}

        await gather(one(key) for key in self.rng.sample(KEYS, self.rng.randint(1, 3)))

    async def recall(self) -> None:
        text = await self.text("recall", "recall", {})
        if text is None:
            return
        kept = json.loads(text).get("remembered") or {}
        for key, values in self.known.items():
            value = kept.pop(key, None)
            short = (value or "nothing")[:40]
            self.ledger.check(value in values, "recall", "swapped" if value else "lost", f"{key} is {short}")
        if kept:
            self.ledger.wrong("swapped", f"recall: there is also {list(kept)}")

    # -- streams

    async def count(self) -> None:
        """Progress comes on its own stream, in order."""
        n = self.rng.randint(2, 12)
        async with self.load.long:
            started = now()
            id, reply = await self.client.call("count", {"n": n, "delay_ms": self.rng.choice((0, 10))}, progress=True)
            response = self.own("count", id, reply, started)
        if response is None:
            return
        steps = [step["params"] for step in reply.notifications("notifications/progress")]
        seen = [(step["progressToken"], step["progress"]) for step in steps]
        wanted = [(f"progress-{id}", step) for step in range(1, n + 1)]
        self.ledger.check(seen == wanted, "progress", "lost" if len(seen) < n else "swapped", f"{seen}, not {wanted}")
        self.ledger.check(tool_text(response) == (f"counted to {n}", False), "count", "swapped", f"{response}")

    async def break_off(self) -> None:
        """The client closes a stream in the middle."""
        async with self.load.long:
            call = asyncio.create_task(self.client.call("count", {"n": 40, "delay_ms": 20}, progress=True))
            await asyncio.sleep(self.rng.uniform(0.02, 0.3))
            call.cancel()
            await asyncio.wait({call})
        self.has_left = True
        self.ledger.note("stream broken off by its client")

    async def ask(self) -> None:
        """One or more questions, answered at once in any order."""
        async with self.load.long:
            asks = [self._ask(ASK_TIMEOUT) for _ in range(self.rng.choice((1, 1, 1, 2, 3)))]

            async def answer(ask: Ask) -> tuple[Question | None, Reply | None]:
                question = await ask.question()
                await asyncio.sleep(self.rng.uniform(0, 0.1))
                return question, await ask.answer()

            await gather(self._judge(ask, asyncio.ensure_future(answer(ask)), started) for ask, started in asks)

    async def ask_late(self) -> None:
        """An answer that comes when the question has expired."""
        async with self.load.long:
            ask, started = self._ask(self.rng.uniform(0.2, 0.6))

            async def answer() -> tuple[Question | None, Reply | None]:
                question = await ask.question()
                await ask.reply()
                return question, await ask.answer() if question else None

            await self._judge(ask, asyncio.ensure_future(answer()), started)

    async def ask_never(self) -> None:
        async with self.load.long:
            ask, started = self._ask(self.rng.uniform(0.2, 0.8))

            async def answer() -> tuple[Question | None, Reply | None]:
                return await ask.question(), None

            await self._judge(ask, asyncio.ensure_future(answer()), started)

    async def ask_and_leave(self) -> None:
        """The client closes the stream while the question is open, and answers all the same."""
        async with self.load.long:
            ask, _ = self._ask(1.0)
            question = await ask.question()
            ask.leave()
            self.has_left = True
        if question is None:
            return
        self.ledger.note("stream broken off by its client")
        await asyncio.sleep(self.rng.uniform(0, 0.5))
        started = now()
        reply = await question.answer()
        if self.came("answer", reply, started):
            self.ledger.check(reply.status == 202, "answer to a stream that is gone", "wrong", f"{reply}")

    async def cancel(self) -> None:
        """The client cancels its call while the question is open: no result comes."""
        async with self.load.long:
            ask, started = self._ask(ASK_TIMEOUT)
            await ask.question()
            await asyncio.sleep(self.rng.uniform(0, 0.05))
            notified = now()
            told = await self.client.notify("notifications/cancelled", {"requestId": ask.id})
            reply = await ask.reply()
            accepted = self.came("notification", told, notified)
            if not self.came("ask, to be cancelled", reply, started):
                return
            own = reply.response(ask.id)
            if own is None and accepted:
                self.ledger.right("cancelled call")
            elif own is None or tool_text(own)[0].startswith("No answer within"):
                # It broke off and had been carried out or not, or it was held up.
                self.ledger.note("cancellation that broke off or came too late")
            else:
                self.ledger.wrong("wrong", f"a cancelled call ended with {reply.messages}")

    async def junk(self) -> None:
        """Answers to nothing do nothing."""
        id = self.rng.choice([self.rng.randrange(1 << 40), "no such", f"{self.rng.random()}", -1])
        result = {"action": "accept", "content": {"answer": self.load.word("junk")}}
        started = now()
        reply = await self.client.post({"jsonrpc": "2.0", "id": id, "result": result})
        if self.came("junk", reply, started):
            self.ledger.check(reply.status == 202 and not reply.messages, "answer to nothing", "wrong", f"{reply}")
            self.ledger.check("Discarded" in reply.headers.get("x-test-log", ""), "answer discarded", "wrong", f"{reply}")

    async def announce(self) -> None:
        """A broadcast while a stream is open, or none."""
        uri = self.load.word("note://note")
        started = now()
        id, reply = await self.client.request("resources/subscribe", {"uri": uri})
        if self.own("subscribe", id, reply, started) is None:
            return
        if self.rng.random() < 0.3:
            if await self.text("announce", "announce", {"uri": uri}) is not None:
                self.announced.append(uri)
            return
        async with self.load.long:
            ask, started = self._ask(ASK_TIMEOUT)
            await ask.question()
            if await self.text("announce", "announce", {"uri": uri}) is not None:
                self.announced.append(uri)
            await ask.answer()
            self.own("ask", ask.id, await ask.reply(), started)

    async def broadcasts(self) -> None:
        """Each broadcast has come once, on whichever stream took it; what none has taken, one more takes."""
        if not self.announced:
            return
        await self.count()
        seen = Counter(
            update["params"]["uri"]
            for reply in self.client.replies.values()
            for update in reply.notifications("notifications/resources/updated")
        )
        for uri in self.announced:
            if seen[uri] == 0 and self.has_left:
                self.ledger.note("broadcast that a broken stream may have taken")
            else:
                self.ledger.check(seen[uri] == 1, "broadcast", "lost", f"{uri} came {seen[uri]} times")

    async def destroy_under_a_question(self) -> None:
        """DELETE while a stream waits: it ends with an error."""
        async with self.load.long:
            ask, started = self._ask(ASK_TIMEOUT)
            await ask.question()
            await self.destroy()
            reply = await ask.reply()
        with contextlib.suppress(Over):
            if self.came("ask, to be destroyed", reply, started):
                own = reply.response(ask.id)
                is_error = own is not None and ("error" in own or tool_text(own)[1])
                self.ledger.check(is_error, "call that its session's end ends", "wrong", f"{reply.messages}")
        raise Over

    def _ask(self, timeout: float) -> tuple[Ask, float]:
        options = Options(self.load.url, question_timeout=CALL_TIMEOUT)
        return Ask(self.client, options, timeout=timeout), now()

    async def _judge(
        self, ask: Ask, answering: asyncio.Future[tuple[Question | None, Reply | None]], started: float
    ) -> None:
        """The tool's result must be what the server said of the answer."""
        question, answer = await answering
        reply = await ask.reply()
        log = ""
        if answer is not None:
            with contextlib.suppress(Over):
                if self.came("answer", answer, started):
                    log = answer.headers.get("x-test-log", "")
                    self.ledger.check(answer.status == 202 and not answer.messages, "answer", "wrong", f"{answer}")
        response = self.own("ask", ask.id, reply, started)
        if question is not None and question.call != ask.id:
            self.ledger.wrong("swapped", f"the question {question.text} came on the stream of call {question.call}")
        if response is None:
            return
        text, is_error = tool_text(response)
        answered, expired = (text, is_error) == (ask.word, False), is_error and text.startswith("No answer within")
        if not answered and not expired:
            self.ledger.wrong("error" if is_error else "swapped", f"ask: {ask.word} got {text[:200]}")
        elif log == "-":
            if len(self.ledger.waits) < WAITS and question is not None:
                self.ledger.waits.append(reply.finished - question.answered)
            self.ledger.check(answered, "ask, answered", "lost", f"{ask.word}: the answer was accepted, the call says {text}")
        elif log:
            self.ledger.check(expired, "ask, answered late", "wrong", f"{ask.word}: {log}, but the call returned it")
        elif answer is None:
            self.ledger.check(expired, "ask, never answered", "swapped", f"{ask.word}: nobody answered, the call says {text}")

    # -- what a store has beside sessions

    async def publish(self) -> None:
        topic, message = self.rng.choice(TOPICS), self.load.word("message").ljust(self.rng.choice((20, 400)), ".")
        text = await self.text("publish", "publish", {"topic": topic, "message": message})
        if text is None:
            return
        number = int(text)
        right = self.load.bus.saw(topic, number, message)
        self.ledger.check(right, "publish", "swapped", f"{topic} {number} is another message, too")
        found = await self._listen(topic, number - 1, 0)
        if found is not None and not found["missed"]:
            messages = found["messages"]
            right = bool(messages) and messages[0] == {"number": number, "message": message}
            self.ledger.check(right, "published message", "lost", f"{topic} {number}: {messages[:1]}")

    async def listen(self) -> None:
        """Goes on where this session last listened to the topic: what it gets has no gaps."""
        topic = self.rng.choice(TOPICS)
        await self._listen(topic, self.cursors.get(topic, -1), self.rng.choice((0, 200)))

    async def _listen(self, topic: str, cursor: int, wait_ms: int) -> dict[str, object] | None:
        text = await self.text("listen", "listen", {"topic": topic, "cursor": cursor, "wait_ms": wait_ms})
        if text is None:
            return None
        found = json.loads(text)
        numbers = [message["number"] for message in found["messages"]]
        if cursor >= 0:
            first = cursor + found["missed"] + 1
            right = numbers == list(range(first, first + len(numbers)))
            self.ledger.check(right, "listen", "lost", f"{topic} after {cursor}: {numbers}, missed {found['missed']}")
            fell_behind = self.load.bus.newest(topic) - cursor > self.load.bus.ring
            if found["missed"] and not fell_behind:
                self.ledger.wrong("lost", f"listen: {topic} after {cursor} missed {found['missed']}")
        for message in found["messages"]:
            right = self.load.bus.saw(topic, message["number"], message["message"])
            self.ledger.check(right, "bus message", "swapped", f"{topic} {message}")
        self.cursors[topic] = found["cursor"]
        return found

    async def once(self) -> None:
        """Two at once use one key: one is the first."""
        key, started = self.load.word("once"), now()
        arguments = {"key": key, "ttl_ms": int(ONCE_TTL * 1000)}
        texts = await gather(self.text("once", "once", arguments) for _ in range(2))
        if None not in texts:
            self.ledger.check(sorted(texts) == ["first", "used"], "once", "wrong", f"{key}: {texts}")
        again = await self.text("once", "once", arguments)
        if again is not None and any(texts) and now() - started < ONCE_TTL:
            self.ledger.check(again == "used", "once more", "wrong", f"{key}: {again}")


ACTIONS: list[tuple[Callable[[Visit], Awaitable[None]], int]] = [
    (Visit.ping, 8),
    (Visit.list_tools, 2),
    (Visit.echo, 8),
    (Visit.echoes, 8),
    (Visit.twins, 4),
    (Visit.slow, 3),
    (Visit.notify, 6),
    (Visit.remember, 8),
    (Visit.recall, 5),
    (Visit.count, 6),
    (Visit.break_off, 2),
    (Visit.ask, 12),
    (Visit.ask_late, 3),
    (Visit.ask_never, 3),
    (Visit.ask_and_leave, 3),
    (Visit.cancel, 3),
    (Visit.junk, 4),
    (Visit.announce, 4),
    (Visit.destroy_under_a_question, 1),
    (Visit.publish, 8),
    (Visit.listen, 8),
    (Visit.once, 4),
]
"""What a user does, and how often beside the others."""


class Load:
    """The users."""

    def __init__(self, url: str, ledger: Ledger, *, seed: int, users: int, workers: int, ttl: float, ring: int) -> None:
        """`workers`: how many processes serve; `ttl`: seconds that a session lives unused; `ring`: messages kept of a topic."""
        self.url = url
        self.ledger = ledger
        self.seed = seed
        self.users = users
        self.ttl = ttl
        self.bus = Bus(ring)
        self.long = asyncio.Semaphore(workers // 4)
        """What holds a worker for long. Answers need workers, too; a user asks up to three questions at once."""
        self.stopping = asyncio.Event()
        self._words = itertools.count(1)
        self._visits: set[Visit] = set()

    def streaming(self) -> set[int]:
        """Pids of the workers that write a stream now."""
        replies = [reply for visit in self._visits for reply in visit.client.replies.values() if not reply.finished]
        return {int(reply.headers["x-worker-pid"]) for reply in replies if "x-worker-pid" in reply.headers}

    def word(self, prefix: str) -> str:
        return f"{prefix}-{next(self._words)}"

    async def run(self) -> None:
        """Until `stopping` is set and every user has finished what it was doing."""
        await gather(self._user(number) for number in range(self.users))

    async def _user(self, number: int) -> None:
        rng = random.Random(f"{self.seed} user {number}")
        while not self.stopping.is_set():
            visit = Visit(self, rng, self.ttl)
            self._visits.add(visit)
            try:
                await self._visit(visit, rng)
            except Over:
                pass
            finally:
                visit.client.http.close()
                self._visits.discard(visit)

    async def _visit(self, visit: Visit, rng: random.Random) -> None:
        if not await visit.begin() or rng.random() < 0.1:
            return  # as clients do that only look
        actions, weights = zip(*ACTIONS)
        for _ in range(rng.randint(2, 30)):
            if self.stopping.is_set():
                break
            await rng.choices(actions, weights)[0](visit)
            await asyncio.sleep(rng.uniform(0, 0.1))
        await visit.recall()
        await visit.broadcasts()
        ids = [question.id for question in visit.client.questions]
        self.ledger.check(len(ids) == len(set(ids)), "question ids differ", "swapped", f"{ids}")
        end = rng.random()
        if end < 0.5:
            await visit.destroy()
        elif end < 0.55 and not self.stopping.is_set():
            await visit.leave_and_return()
        # The others are left behind.


async def gather(awaitables: Iterable[Awaitable[Any]]) -> list[Any]:
    """What all of them return; the first exception after all have ended."""
    outcomes = await asyncio.gather(*awaitables, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return outcomes
