"""Messages that a client of the AI SDK sends: their parts, and their conversion to the state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Self

from wattle._whitespace import WHITESPACE
from wattle.chat._stored import field_of
from wattle.chat.ui._part import TOOL


@dataclass(frozen=True)
class ToolPart:
    """A tool call in a message of the AI SDK."""

    name: str
    """Name of the tool."""
    call_id: str
    """Id that the model gave the call."""
    input: Any
    """Arguments; `None` if they are unknown."""
    status: str | None = None
    """`success` or `error`; `None` if the call has no result, yet or at all."""
    output: Any = None
    """Output of a call that succeeded."""
    error: str = ""
    """Error of a call that failed."""


@dataclass(frozen=True)
class Part:
    """A part of a message of the AI SDK, with the fields that a conversation needs.

    >>> Part.of({"type": "text", "text": "hi"}).text
    'hi'
    >>> Part.of({"type": "data-weather", "data": {}}).kind
    'other'
    """

    kind: str
    """`text`, `reasoning`, `step_start` for the start of a model call, `file`, `tool` or `other`
    for any other part."""
    text: str = ""
    """The text or reasoning, or the name of a file."""
    tool: ToolPart | None = None
    """The call of a `tool`."""

    @classmethod
    def of(cls, part: Any) -> Self:
        """Parses a part."""
        kind = _text(part, "type")
        if kind in ("text", "reasoning"):
            return cls(kind, _text(part, "text"))
        if kind == "step-start":
            return cls("step_start")
        if kind == "file":
            return cls("file", _text(part, "filename", "a file"))
        if kind == "dynamic-tool":
            return cls._tool(_text(part, "toolName"), part)
        if kind.startswith(TOOL):
            return cls._tool(kind.removeprefix(TOOL), part)
        return cls("other")

    @classmethod
    def _tool(cls, name: str, part: dict[str, Any]) -> Self:
        # Providers reject a conversation with a call without a name or an id.
        call_id = _text(part, "toolCallId")
        if not name or not call_id:
            return cls("other")
        status, output, error = None, None, ""
        state = part.get("state")
        if state == "output-available" and part.get("preliminary") is not True:
            status, output = "success", part.get("output")
        elif state == "output-error":
            status, error = "error", _text(part, "errorText")
        return cls("tool", tool=ToolPart(name, call_id, part.get("input"), status, output, error))


class CallIds:
    """The ids of the tool calls of a conversation, as a model reads them.

    A model needs unique ids, so a call whose id is in use gets a number as suffix.
    """

    def __init__(self) -> None:
        self._next: dict[str, int] = {}
        """The number of the next suffix, by id."""

    def unique(self, id: str) -> str:
        """Returns the id, with a number as suffix if another call has it."""
        unique = id
        number = self._next.get(id)
        if number is not None:
            while unique in self._next:
                unique = f"{id}-{number}"
                number += 1
            self._next[id] = number
        self._next[unique] = 2
        return unique


def to_stored(
    parts: Iterable[Any], ids: CallIds, view: Callable[[ToolPart], str | None]
) -> list[dict[str, Any]]:
    """Converts the parts of a message of the assistant to messages of the reducer `messages`.

    The message contains all output of one run. It is split into turns: the text with the requested
    calls, then a result for each call. `view` returns what the model reads of the output or the
    error of a tool call; a call for which it returns `None` is left out. So is a call without a
    result, such as after a cancel, because providers reject it.

    `ids` has the ids of the calls of the conversation so far.

    >>> call = {"type": "tool-add", "toolCallId": "c", "state": "output-available"}
    >>> parts = [{"type": "step-start"}, {**call, "input": {"a": 1, "b": 2}, "output": 3}]
    >>> messages = to_stored(parts, CallIds(), lambda call: call.error or str(call.output))
    >>> messages[0]["tool_calls"][0]["name"], messages[1]["content"]
    ('add', '3')
    """
    messages: list[dict[str, Any]] = []
    turn = _Turn()
    for part in map(Part.of, parts):
        # A page may omit the start of a model call, and no text of a model call follows its tools.
        is_next = part.kind in ("text", "reasoning") and bool(turn.calls)
        if part.kind == "step_start" or is_next:
            messages.extend(turn.messages())
            turn = _Turn()
        if part.kind == "text":
            turn.text += part.text
        elif part.kind == "reasoning":
            turn.reasoning += part.text
        elif part.tool is not None and part.tool.status is not None:
            content = view(part.tool)
            if content is not None:
                turn.call(ids.unique(part.tool.call_id), part.tool, content)
    return [*messages, *turn.messages()]


@dataclass
class _Turn:
    """The output of one model call, so far."""

    text: str = ""
    reasoning: str = ""
    calls: list[dict[str, Any]] = field(default_factory=list)
    results: list[dict[str, Any]] = field(default_factory=list)

    def call(self, id: str, call: ToolPart, content: str) -> None:
        arguments = call.input if isinstance(call.input, dict) else {}
        self.calls.append({"id": id, "name": call.name, "arguments": arguments})
        result = {"role": "tool", "tool_call_id": id, "name": call.name, "status": call.status}
        self.results.append({**result, "content": content})

    def messages(self) -> list[dict[str, Any]]:
        if not self.text.strip(WHITESPACE) and not self.calls:
            return []
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        if self.calls:
            message["tool_calls"] = self.calls
        if self.reasoning:
            message["reasoning"] = self.reasoning
        return [message, *self.results]


def _text(part: Any, name: str, default: str = "") -> str:
    """Returns a text of a part, or a default if it has none."""
    text = field_of(part, name)
    return text if isinstance(text, str) else default
