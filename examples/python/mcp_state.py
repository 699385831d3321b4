"""mcp-state for Python through ctypes: the functions of the C library that `elicit.py` needs. More can be added alike.

Each text is passed as a pointer and a length, results arrive through out-parameters, and this module frees the memory that
the library returns at once. `include/mcp_state.h` documents the functions. `MCP_STATE_LIBRARY` names the library; without
it, ld.so finds the library.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, Structure, byref, c_bool, c_char, c_int, c_int32, c_int64, c_size_t, c_uint8, c_uint32, c_void_p

ABI_VERSION = 1

OWNER_STREAM, OWNER_REPLY = 1, 2
INTEREST_RESOLUTION, INTEREST_MESSAGE, INTEREST_CANCELLATION = 1, 2, 4
WAIT_READY, WAIT_DEADLINE, WAIT_DESTROYED, WAIT_INTERRUPTED = 1, 2, 3, 4
CLAIM_ANSWERED, CLAIM_WAITING, CLAIM_TIMED_OUT, CLAIM_CANCELLED, CLAIM_NOT_OWNER, CLAIM_UNKNOWN = range(1, 7)
DELIVERIES = ("delivered", "unknown", "finished", "timed out", "already answered", "cancelled", "abandoned")

_OWNER_SIZE = 33


class _Error(Structure):
    _fields_ = [
        ("status", c_int),
        ("maximum", c_int64),
        ("actual", c_int64),
        ("limit", c_char * 40),
        ("text", c_char * 1024),
    ]


class _Message(Structure):
    _fields_ = [
        ("number", c_int64),
        ("text", c_void_p),
        ("text_len", c_size_t),
        ("context", c_void_p),
        ("context_len", c_size_t),
    ]


class McpStateError(Exception):
    """A failure; `status` is one of `mcp_state_status`."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


_c = ctypes.CDLL(os.environ.get("MCP_STATE_LIBRARY", "libmcp_state.so.1"))
_c.mcp_state_abi_version.restype = c_uint32
if (_found := _c.mcp_state_abi_version()) != ABI_VERSION:
    raise ImportError(f"libmcp_state has ABI version {_found}, and this module needs {ABI_VERSION}")

_TEXT = (c_void_p, c_size_t)  # a pointer to bytes that outlive the call, and their number
_FUNCTIONS: dict[str, tuple] = {
    "engine_open": (*_TEXT, POINTER(c_void_p)),
    "create_session": (c_void_p, *_TEXT, POINTER(c_int64), *_TEXT, POINTER(c_void_p)),
    "open_session": (c_void_p, *_TEXT, *_TEXT, POINTER(c_void_p)),
    "session_id": (c_void_p, POINTER(c_void_p)),
    "attach": (c_void_p, c_int32, POINTER(c_int64), POINTER(c_char), c_size_t),
    "detach": (c_void_p, *_TEXT, POINTER(c_bool), POINTER(c_int64), POINTER(c_int64)),
    "get": (c_void_p, *_TEXT, POINTER(c_void_p)),
    "set": (c_void_p, *_TEXT, *_TEXT),
    "send_request": (c_void_p, *_TEXT, *_TEXT, c_int64, *_TEXT, POINTER(c_int64)),
    "take_outgoing": (c_void_p, *_TEXT, c_int64, POINTER(c_void_p)),
    "wait": (c_void_p, *_TEXT, c_int32, c_int64, c_int64, POINTER(c_int), POINTER(c_int64)),
    "claim": (c_void_p, *_TEXT, c_int64, POINTER(c_int), POINTER(c_void_p), POINTER(c_int64)),
    "deliver_response": (c_void_p, c_int64, *_TEXT, POINTER(c_int)),
}
for _name, _arguments in _FUNCTIONS.items():
    _function = getattr(_c, f"mcp_state_{_name}")
    _function.argtypes, _function.restype = (*_arguments, POINTER(_Error)), c_int
for _name in ("engine", "session", "buffer", "messages"):
    _function = getattr(_c, f"mcp_state_{_name}_free")
    _function.argtypes, _function.restype = (c_void_p,), None
for _name, _result in (("buffer_len", c_size_t), ("buffer_data", c_void_p), ("messages_len", c_size_t)):
    _function = getattr(_c, f"mcp_state_{_name}")
    _function.argtypes, _function.restype = (c_void_p,), _result
_c.mcp_state_messages_at.argtypes, _c.mcp_state_messages_at.restype = (c_void_p, c_size_t), POINTER(_Message)


def _call(name: str, *arguments: object) -> None:
    """Calls a function. A `str` becomes a text, and an empty tuple an absent text."""
    passed: list[object] = []
    for argument in arguments:
        if isinstance(argument, str):
            data = argument.encode()
            passed += [ctypes.cast(ctypes.c_char_p(data), c_void_p), len(data)]
        elif argument == ():
            passed += [None, 0]
        else:
            passed.append(argument)
    error = _Error()
    if status := getattr(_c, f"mcp_state_{name}")(*passed, byref(error)):
        raise McpStateError(status, error.text.decode())


def _take_text(buffer: c_void_p) -> str | None:
    if not buffer:
        return None
    try:
        return ctypes.string_at(_c.mcp_state_buffer_data(buffer), _c.mcp_state_buffer_len(buffer)).decode()
    finally:
        _c.mcp_state_buffer_free(buffer)


class Store:
    """An open store."""

    def __init__(self, dsn: str) -> None:
        self._handle = c_void_p()
        _call("engine_open", dsn, byref(self._handle))

    def __del__(self) -> None:
        _c.mcp_state_engine_free(self._handle)

    def create_session(self, id: str | None = None, ttl_ms: int | None = None, principal: str | None = None) -> Session | None:
        """Creates a session; None if the id is taken."""
        handle, ttl = c_void_p(), None if ttl_ms is None else byref(c_int64(ttl_ms))
        _call("create_session", self._handle, _optional(id), ttl, _optional(principal), byref(handle))
        return Session(handle) if handle else None

    def open_session(self, id: str, principal: str | None = None) -> Session | None:
        """Returns the session; None if it does not exist or belongs to another principal."""
        handle = c_void_p()
        _call("open_session", self._handle, id, _optional(principal), byref(handle))
        return Session(handle) if handle else None


class Session:
    """A session of a `Store`."""

    def __init__(self, handle: c_void_p) -> None:
        self._handle = handle

    def __del__(self) -> None:
        _c.mcp_state_session_free(self._handle)

    @property
    def id(self) -> str:
        text = c_void_p()
        _call("session_id", self._handle, byref(text))
        return _take_text(text) or ""

    def get(self, key: str) -> str | None:
        """Returns the JSON text under a dotted key."""
        text = c_void_p()
        _call("get", self._handle, key, byref(text))
        return _take_text(text)

    def set(self, key: str, json: str) -> None:
        _call("set", self._handle, key, json)

    def attach(self, kind: int = OWNER_STREAM, lease_ms: int | None = None) -> Owner:
        """Attaches an owner for the exchange that this process serves. Detach it at the end."""
        token, lease = ctypes.create_string_buffer(_OWNER_SIZE), None if lease_ms is None else byref(c_int64(lease_ms))
        _call("attach", self._handle, kind, lease, token, _OWNER_SIZE)
        return Owner(self, token.value.decode())

    def deliver_response(self, id: int, payload: str) -> str:
        """Delivers a response and returns one of `DELIVERIES`: "delivered", or why it is late."""
        delivery = c_int()
        _call("deliver_response", self._handle, id, payload, byref(delivery))
        return DELIVERIES[delivery.value]


class Owner:
    """An owner, from `Session.attach`."""

    def __init__(self, session: Session, token: str) -> None:
        self._session, self.token = session, token

    def __enter__(self) -> Owner:
        return self

    def __exit__(self, *_: object) -> None:
        self.detach()

    def detach(self) -> None:
        _call("detach", self._session._handle, self.token, byref(c_bool()), byref(c_int64()), byref(c_int64()))

    def send_request(self, message: str, timeout_ms: int = 120_000, context: str = "") -> int:
        """Gives a JSON-RPC request an id, registers it and queues it in one transaction. Returns the id."""
        id = c_int64()
        _call("send_request", self._session._handle, self.token, message, timeout_ms, context, byref(id))
        return id.value

    def take_outgoing(self, max: int = 100) -> list[tuple[int, str, str]]:
        """Removes the next messages, and returns the number, text and context of each."""
        handle = c_void_p()
        _call("take_outgoing", self._session._handle, self.token, max, byref(handle))
        try:
            found = (_c.mcp_state_messages_at(handle, i).contents for i in range(_c.mcp_state_messages_len(handle)))
            return [
                (m.number, ctypes.string_at(m.text, m.text_len).decode(), ctypes.string_at(m.context, m.context_len).decode())
                for m in found
            ]
        finally:
            _c.mcp_state_messages_free(handle)

    def wait(self, wait_ms: int, after: int = 0, interest: int = INTEREST_RESOLUTION) -> tuple[int, int]:
        """Waits at most a second, and returns WAIT_* and the next `after`. Other Python threads run meanwhile."""
        outcome, cursor = c_int(), c_int64()
        _call("wait", self._session._handle, self.token, interest, after, wait_ms, byref(outcome), byref(cursor))
        return outcome.value, cursor.value

    def claim(self, id: int) -> tuple[int, str | None]:
        """Claims the request, and returns CLAIM_* and, if answered, the response."""
        state, payload, left = c_int(), c_void_p(), c_int64()
        _call("claim", self._session._handle, self.token, id, byref(state), byref(payload), byref(left))
        return state.value, _take_text(payload)


def _optional(text: str | None) -> str | tuple[()]:
    return () if text is None else text
