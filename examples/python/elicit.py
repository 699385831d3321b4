#!/usr/bin/env python3
"""A question to the client, and its answer in another process: the program `../c/elicit.c` in Python.

    elicit.py ask DSN                       asks, prints session and message, waits, prints the answer
    elicit.py answer DSN SESSION ID JSON    delivers an answer, prints whether it was in time

Set `MCP_STATE_LIBRARY` to the path of libmcp_state.so if ld.so does not find it.
"""

from __future__ import annotations

import sys

import mcp_state

QUESTION = '{"jsonrpc":"2.0","method":"elicitation/create","params":{"message":"Go on?"}}'


def ask(dsn: str) -> int:
    session = mcp_state.Store(dsn).create_session()
    assert session is not None, "a random id is free"
    print(session.id, flush=True)
    with session.attach() as owner:
        id = owner.send_request(QUESTION, timeout_ms=60_000)
        for _, message, _ in owner.take_outgoing():
            print(message, flush=True)
        state, answer, after = mcp_state.CLAIM_WAITING, None, 0
        while state == mcp_state.CLAIM_WAITING:
            _, after = owner.wait(1000, after)
            state, answer = owner.claim(id)
    if state != mcp_state.CLAIM_ANSWERED:
        print(f"elicit: no answer ({state})", file=sys.stderr)
        return 1
    print(answer)
    return 0


def answer(dsn: str, session_id: str, id: str, json: str) -> int:
    session = mcp_state.Store(dsn).open_session(session_id)
    if session is None:
        print(f"elicit: there is no session {session_id}", file=sys.stderr)
        return 1
    became = session.deliver_response(int(id), json)
    print(became)
    return 0 if became == "delivered" else 1


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["ask", dsn]:
            sys.exit(ask(dsn))
        case ["answer", dsn, session_id, id, json]:
            sys.exit(answer(dsn, session_id, id, json))
        case _:
            sys.exit(__doc__)
