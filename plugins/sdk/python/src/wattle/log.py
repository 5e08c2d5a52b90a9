"""Log messages for the operator. The host adds the plugin and the task to each message.

Messages of `logging` go here as well, from level `INFO` on. Lines that a plugin prints become log
messages of the levels `stdout` and `stderr`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from wattle import _host, _json


class Level(StrEnum):
    """The severity of a message."""

    TRACE = "trace"
    """The finest level: individual steps."""
    DEBUG = "debug"
    """Details for the author of the plugin."""
    INFO = "info"
    """Normal operation."""
    WARN = "warn"
    """A possible problem."""
    ERROR = "error"
    """An error."""


def write(level: Level, message: str, fields: Mapping[str, Any] | None = None) -> None:
    """Writes a message with structured fields.

    The host truncates a message that has more than 64 KiB with its fields, and drops the messages
    of a task or a handler after the first 10,000, or after 8 MiB.
    """
    plain = {name: _json.to_value(f"`{name}`", value) for name, value in (fields or {}).items()}
    _host.interface("log").write(level, message, plain)


def trace(message: str, **fields: Any) -> None:
    """Writes a message of level `trace` with structured fields."""
    write(Level.TRACE, message, fields)


def debug(message: str, **fields: Any) -> None:
    """Writes a message of level `debug` with structured fields."""
    write(Level.DEBUG, message, fields)


def info(message: str, **fields: Any) -> None:
    """Writes a message of level `info` with structured fields."""
    write(Level.INFO, message, fields)


def warn(message: str, **fields: Any) -> None:
    """Writes a message of level `warn` with structured fields."""
    write(Level.WARN, message, fields)


def error(message: str, **fields: Any) -> None:
    """Writes a message of level `error` with structured fields."""
    write(Level.ERROR, message, fields)
