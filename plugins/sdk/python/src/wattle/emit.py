"""Custom events and progress, which appear in the event log and in all streams.

The host streams the completions of models. A node that writes a message itself can stream it in the
same way, with `message_delta` and `message_end`: chat clients then show a growing message instead
of an event.
"""

from __future__ import annotations

from typing import Any

from wattle import _host, _json

MESSAGE_DELTA = "message.delta"
"""Name of the event that contains a delta of a message."""

MESSAGE_END = "message.end"
"""Name of the event that ends a streamed message."""


def custom(name: str, data: Any) -> None:
    """Appends an event to the log.

    The name has 1 to 64 characters of `[a-zA-Z0-9_.-]`. The names `message.delta` and `message.end`
    are reserved, see `message_delta` and `message_end`.
    """
    _host.interface("emit").custom(name, _json.to_value("the data of the event", data))


def message_delta(id: str, text: str) -> None:
    """Streams a delta of the message that the node will write with this id.

    The text continues the earlier deltas of the message. A message must end before another one
    begins.
    """
    custom(MESSAGE_DELTA, {"id": id, "text": text})


def message_end(id: str) -> None:
    """Ends the streamed message with this id."""
    custom(MESSAGE_END, {"id": id})


def progress(message: str, fraction: float | None = None) -> None:
    """Reports the progress of the node: a message, and the completed fraction from 0 to 1.

    The event is also a task heartbeat, which restarts the idle timeout of the attempt.
    """
    _host.interface("emit").progress(message, fraction)
