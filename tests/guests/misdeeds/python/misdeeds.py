"""Twins of the misdeeds in Rust: each must end like its twin there.

`explore` is the twin of the node of `tests/guests/foreign`.
"""

import builtins
import functools
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

from wattle import node

MOUTHFUL_BYTES = 1 << 20
"""Size of one allocation of `hog`, in bytes."""


@node
def counter(number: int = 0) -> {"number": int}:
    """Adds one to `number`."""
    return {"number": number + 1}


@node
def spin() -> None:
    """Loops forever."""
    while True:
        pass


@node
def hog() -> None:
    """Allocates until the host ends it."""
    kept = []
    while True:
        kept.append(b"x" * MOUTHFUL_BYTES)


@node
def trap() -> None:
    """Raises an exception."""
    raise ValueError("a misdeed")


@node
def huge_output(size: int) -> {"text": str}:
    """Writes a text of `size` bytes to `text`."""
    return {"text": "x" * size}


@node
def deep_json(depth: int) -> {"value": Any}:
    """Writes arrays nested `depth` levels deep to `value`."""
    value = None
    for _ in range(depth):
        value = [value]
    return {"value": value}


def _read() -> None:
    with open("/etc/hostname") as file:
        file.read()


def _write() -> None:
    with open("found", "w") as file:
        file.write("x")


def _environment() -> None:
    os.environ["PATH"]


def _arguments() -> None:
    sys.argv[0]


def _connect() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as connection:
        connection.connect(("127.0.0.1", 80))


def _bind() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))


ATTEMPTS: dict[str, Callable[[], Any]] = {
    "read a file": _read,
    "list the root": lambda: os.listdir("/"),
    "write a file": _write,
    "environment": _environment,
    "arguments": _arguments,
    "look up a name": lambda: socket.getaddrinfo("localhost", 80),
    "connect": _connect,
    "bind": _bind,
    "start a process": lambda: subprocess.run(["true"], check=True),
    "start a thread": lambda: threading.Thread(target=print).start(),
}
"""Each attempt raises an exception if Python or the host refuses it."""


@node
def explore() -> {"reached": list[str], "refused": dict[str, str]}:
    """Tries files, environment, arguments and sockets."""
    refusals = {name: _refusal(attempt) for name, attempt in ATTEMPTS.items()}
    return {
        "reached": [name for name, refusal in refusals.items() if refusal is None],
        "refused": {name: refusal for name, refusal in refusals.items() if refusal is not None},
    }


def _refusal(attempt: Callable[[], Any]) -> str | None:
    """Returns the class of the exception of an attempt; none if the attempt works.

    All errors of the system have the name `OSError`.
    """
    try:
        attempt()
    except OSError:
        return "OSError"
    except Exception as error:
        return type(error).__name__
    return None


_MARKS: list[str] = []


class _Marks:
    marks: list[str] = []


@functools.cache
def _cached() -> list[str]:
    return []


PLACES: dict[str, tuple[Callable[[], bool], Callable[[], None]]] = {
    "a variable": (lambda: bool(_MARKS), lambda: _MARKS.append("a call")),
    "a class": (lambda: bool(_Marks.marks), lambda: _Marks.marks.append("a call")),
    "a cache": (lambda: bool(_cached()), lambda: _cached().append("a call")),
    "a module": (lambda: "marked" in vars(os), lambda: vars(os).update(marked=True)),
    "the modules": (lambda: "marked" in sys.modules, lambda: sys.modules.update(marked=sys)),
    "built-ins": (lambda: "marked" in vars(builtins), lambda: vars(builtins).update(marked=True)),
}
"""Places in which a mark could outlast a call, each with functions that find and leave a mark."""


def _places(marked: bool) -> list[str]:
    return [name for name, (is_marked, _) in PLACES.items() if is_marked() == marked]


@node
def recollect() -> {"recollected": list[str], "forgotten": list[str]}:
    """Looks for marks of earlier calls, and leaves a mark in every place."""
    recollected = _places(True)
    for _, mark in PLACES.values():
        mark()
    return {"recollected": recollected, "forgotten": _places(False)}
