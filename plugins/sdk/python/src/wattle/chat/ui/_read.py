"""Messages of a request, checked and reduced to what an app stores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wattle import status
from wattle._whitespace import WHITESPACE
from wattle.chat._stored import field_of
from wattle.chat.ui._client import Part
from wattle.chat.ui._message import Role, UiMessage
from wattle.web import refuse

ID_CHARS = 200
"""Maximum number of characters of an id. Ids of clients have about twenty."""


@dataclass(frozen=True)
class Limits:
    """Limits of the messages that a client sends."""

    messages: int
    """Maximum number of messages."""
    parts: int
    """Maximum number of parts of a message."""
    text_chars: int
    """Maximum number of characters of a message of the user."""


class _Invalid(Exception):
    """The messages are invalid. The text is for their sender."""


def read(messages: Any, limits: Limits, output: Callable[[Any], Any]) -> list[UiMessage]:
    """Reads the messages of a request.

    They are those of an app whose page sends the whole conversation each time, as `useChat` does.
    The last one must be a text of the user, because the run replies to it.

    Files are reduced to their names, and unknown parts are left out. `output` returns the output of
    a tool call as the app stores it: a client can send one of any length. Raises a failure with
    status 400 and a message for the sender.

    >>> limits = Limits(messages=100, parts=100, text_chars=4_000)
    >>> file = {"type": "file", "filename": "a.png", "mediaType": "image/png", "url": "data:..."}
    >>> parts = [{"type": "text", "text": "what is this?"}, file]
    >>> sent = [{"id": "u", "role": "user", "parts": parts}]
    >>> read(sent, limits, lambda output: output)[0].parts[1]
    {'type': 'file', 'filename': 'a.png', 'mediaType': 'image/png'}
    """
    try:
        return _all(messages, limits, output)
    except _Invalid as why:
        raise refuse(status.BAD_REQUEST, str(why)) from None


def _all(messages: Any, limits: Limits, output: Callable[[Any], Any]) -> list[UiMessage]:
    if not isinstance(messages, list):
        raise _Invalid("`messages` must be a list of messages")
    if len(messages) > limits.messages:
        raise _Invalid(f"a conversation has at most {limits.messages} messages; begin a new one")
    found = []
    for index, message in enumerate(messages):
        try:
            found.append(_one(message, index, limits, output))
        except _Invalid as why:
            raise _Invalid(f"message {index + 1}: {why}") from None
    if len({message.id for message in found}) < len(found):
        raise _Invalid("two messages have the same id")
    last = found[-1] if found else None
    if last is None or last.role != Role.USER or not last.text().strip(WHITESPACE):
        raise _Invalid("the last message must be a text of the user")
    return found


def _one(message: Any, index: int, limits: Limits, output: Callable[[Any], Any]) -> UiMessage:
    role = _role(message)
    id = _field(message, "id", str, "a string") or f"message-{index}"
    parts = _field(message, "parts", list, "a list") if "parts" in message else []
    if parts is None:
        raise _foreign("`parts` is null, expected a list")
    if len(id) > ID_CHARS or "\0" in id:
        raise _Invalid(f"its id is longer than {ID_CHARS} characters, or has a NUL")
    if len(parts) > limits.parts:
        raise _Invalid(f"it has more than {limits.parts} parts")
    kept = [it for it in (_kept(part, output) for part in parts) if it is not None]
    # Older clients send it instead of parts.
    content = message.get("content")
    if not kept and isinstance(content, str):
        kept.append({"type": "text", "text": content})
    found = UiMessage(id, role, kept)
    if role == Role.USER and len(found.text()) > limits.text_chars:
        raise _Invalid(f"it is longer than {limits.text_chars} characters; say it in fewer")
    return found


def _role(message: Any) -> Role:
    if not isinstance(message, dict):
        raise _foreign("it is no JSON object")
    if "role" not in message:
        raise _foreign("missing field `role`")
    role = _field(message, "role", str, "a string")
    if role not in list(Role):
        known = ", ".join(f"`{it}`" for it in Role)
        raise _foreign(f"unknown variant `{role}`, expected one of {known}")
    return Role(role)


def _field(message: dict[str, Any], name: str, of: type, expected: str) -> Any:
    """Returns a field of a type, or `None` if it is missing or null."""
    value = message.get(name)
    if value is not None and not isinstance(value, of):
        raise _foreign(f"`{name}` is not {expected}")
    return value


def _foreign(reason: str) -> _Invalid:
    return _Invalid(f"it is no message of a chat page: {reason}")


def _kept(part: Any, output: Callable[[Any], Any]) -> dict[str, Any] | None:
    """Returns a part as it is stored: a file by its name, and no unknown part."""
    parsed = Part.of(part)
    if parsed.kind == "other":
        return None
    if parsed.kind == "file":
        media_type = field_of(part, "mediaType")
        if not isinstance(media_type, str):
            media_type = "application/octet-stream"
        return {"type": "file", "filename": parsed.text, "mediaType": media_type}
    if parsed.kind == "tool" and "output" in part:
        return {**part, "output": output(part["output"])}
    return dict(part)
