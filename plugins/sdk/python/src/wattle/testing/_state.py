"""Script and stored data of a fake host, and the fake host of the current thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wattle.failure import Failure
from wattle.memory import Item

if TYPE_CHECKING:
    from wattle.testing._fake import FakeHost

DEFAULT_NOW_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z. A test that sets no time gets a plausible date."""

Script = Callable[..., Any]


@dataclass
class Kept:
    """A document of the memory."""

    item: Item
    expires_ms: int | None
    refresh_ms: int | None
    """Sliding expiry: lifetime after a read, in milliseconds."""


@dataclass
class State:
    """What the methods of a fake host set, and what its calls store."""

    scripts: dict[str, Script] = field(default_factory=dict)
    tools: list[tuple[Any, Script]] = field(default_factory=list)
    routes: dict[str, Any] = field(default_factory=dict)
    tenant_routes: dict[str, Any] = field(default_factory=dict)
    dialect: str = "sqlite"
    now_ms: int = DEFAULT_NOW_MS
    monotonic_ns: int = 0
    zones: list[tuple[str, int]] = field(default_factory=lambda: [("UTC", 0)])
    """Names of time zones and their offsets in seconds. The last one is the operator's."""
    random: int = 0
    answers: deque[Any] = field(default_factory=deque)
    settings: dict[str, Any] = field(default_factory=dict)
    blobs: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    memory: dict[tuple[tuple[str, ...], str], Kept] = field(default_factory=dict)
    threads: dict[str, Any] = field(default_factory=dict)
    events: list[tuple[str, Any]] = field(default_factory=list)


_current: ContextVar[FakeHost | None] = ContextVar("fake_host", default=None)


def enter(host: FakeHost) -> Token[FakeHost | None]:
    """Makes a fake host the current one."""
    return _current.set(host)


def leave(entered: Token[FakeHost | None]) -> None:
    """Restores the fake host that was current before."""
    _current.reset(entered)


def find() -> FakeHost | None:
    """Returns the current fake host, if there is one."""
    return _current.get()


def current() -> FakeHost:
    """Returns the current fake host."""
    host = find()
    if host is None:
        raise Failure.unsupported("a test has no host; wrap the call in `FakeHost.run`")
    return host


def play(method: str, asked: Any) -> Any:
    """Runs a script. Without a script, fails with the name of the method that sets it."""
    script = current().state.scripts.get(method)
    if script is None:
        raise Failure.unsupported(f"the fake host has no script; set one with `FakeHost.{method}`")
    return script(asked)
