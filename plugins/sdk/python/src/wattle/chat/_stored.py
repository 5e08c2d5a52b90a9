"""Messages of a conversation as they are in the state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any

from wattle import _schema
from wattle.failure import Failure


@dataclass
class ToolCall:
    """A tool call that a model requests."""

    # The schema of each app with conversations has the line above as its description, and those of
    # the fields. Extension fields, which are for models, are left out.
    id: Annotated[str, "Id of the call, which its result must contain."]
    name: Annotated[str, "Name of the tool."]
    arguments: Annotated[Any, "Arguments as JSON."] = None


@dataclass
class Stored:
    """A message in the state."""

    role: str
    id: str = ""
    content: Any = None
    tool_calls: list[ToolCall] = field(default_factory=list)
    tool_call_id: str = ""
    name: str = ""
    status: str = ""
    structured: Any = None

    def is_user(self) -> bool:
        """Returns true if the user sent the message."""
        return self.role == "user"

    def is_assistant(self) -> bool:
        """Returns true if a model wrote the message."""
        return self.role == "assistant"

    def is_tool(self) -> bool:
        """Returns true if the message is the result of a tool call."""
        return self.role == "tool"

    def text(self) -> str:
        """Returns the text of the message, whose content may be a list of parts."""
        return text_of(self.content)

    def result(self) -> Any:
        """Returns the result of a tool: its structured output, or its text without one."""
        return self.text() if self.structured is None else self.structured


def text_of(content: Any) -> str:
    """Returns the text of a content, which may be a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "".join(text for text in texts if isinstance(text, str))


def calls(message: Any) -> Iterator[ToolCall]:
    """Returns the tool calls that a message requests. Missing fields are empty."""
    requested = field_of(message, "tool_calls")
    for call in requested if isinstance(requested, list) else []:
        id, name = field_of(call, "id"), field_of(call, "name")
        yield ToolCall(
            id if isinstance(id, str) else "",
            name if isinstance(name, str) else "",
            field_of(call, "arguments"),
        )


def field_of(value: Any, name: str) -> Any:
    """Returns a field of a JSON object; `None` for any other value."""
    return value.get(name) if isinstance(value, dict) else None


def read(channel: Any) -> list[Stored]:
    """Reads the messages of a channel.

    Invalid messages are skipped, so that they do not suppress the others.
    """
    found = (_read_one(message) for message in (channel if isinstance(channel, list) else []))
    return [message for message in found if message is not None]


def has_reply(channel: Any) -> bool:
    """Returns true if the last message is an assistant message without tool calls.

    A conversation without a valid last message needs no reply, so the result is true as well.
    """
    last = _read_one(channel[-1]) if isinstance(channel, list) and channel else None
    return last is None or (last.is_assistant() and not last.tool_calls)


def last_user(messages: list[Stored]) -> int:
    """Returns the number of messages up to the last one of the user; 0 if there is none."""
    places = [place for place, message in enumerate(messages, 1) if message.is_user()]
    return places[-1] if places else 0


def _read_one(message: Any) -> Stored | None:
    try:
        stored: Stored = _schema.decode("the message", Stored, message)
    except Failure:
        return None
    return stored


_schema.prepare(reads=[Stored])
