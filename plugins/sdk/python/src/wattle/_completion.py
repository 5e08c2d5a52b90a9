"""Completions: the outputs of model calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self, TypeVar, overload

from wattle import _json, _schema
from wattle._whitespace import WHITESPACE
from wattle.failure import Failure
from wattle.message import (
    PROVIDER_STATE,
    Message,
    OtherPart,
    Part,
    Reasoning,
    Role,
    ToolCall,
    text_of,
)

ID = "id"
"""Extension field that contains the id of a completion or message."""

CALL_IDS = "call_ids"
"""Extension field of a completion that contains unique ids of its tool calls."""

T = TypeVar("T")


class FinishReason:
    """The reasons why completions end. A reason that this version does not know is its name."""

    STOP = "stop"
    """The completion is complete."""
    LENGTH = "length"
    """The model reached its limit of output tokens."""
    TOOL_CALLS = "tool-calls"
    """The model requests tool calls."""
    CONTENT_FILTER = "content-filter"
    """A content filter withheld the rest of the completion."""


@dataclass
class Usage:
    """Token counts of a call. A count is `None` if the provider does not report it."""

    input_tokens: int | None = None
    """Number of input tokens."""
    output_tokens: int | None = None
    """Number of output tokens."""
    cached_input_tokens: int | None = None
    """Number of input tokens that the provider read from its cache."""
    reasoning_tokens: int | None = None
    """Number of output tokens of the reasoning."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Extension fields."""


@dataclass
class Attempt:
    """The attempts at one candidate of a route."""

    provider: str
    """Name of the provider."""
    model: str
    """Name of the model as the route configures it."""
    tries: int = 0
    """Number of requests to the model, including retries."""
    error: Failure | None = None
    """Failure of the candidate; `None` for the candidate that succeeded."""


@dataclass
class Completion:
    """The output of a model call."""

    parts: list[Part] = field(default_factory=list)
    """Content in order."""
    structured: Any = None
    """Output that matches the requested schema, if the request has a schema."""
    finish_reason: str = FinishReason.STOP
    """Why the completion ended, see `FinishReason`."""
    usage: Usage = field(default_factory=Usage)
    """Token counts."""
    model: str = ""
    """Name of the model that wrote the completion."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Extension fields."""

    @classmethod
    def of_text(cls, text: str) -> Self:
        """Builds a text completion, for tests."""
        return cls([text])

    @classmethod
    def of_json(cls, document: Any) -> Self:
        """Builds a completion with structured output, for tests."""
        text = _json.write("the completion", document)
        return cls([text], structured=_json.read("the completion", text))

    @classmethod
    def of_tool_call(cls, id: str, name: str, arguments: Any) -> Self:
        """Builds a completion with a tool call, for tests."""
        return cls([ToolCall(id, name, arguments)], finish_reason=FinishReason.TOOL_CALLS)

    def with_id(self, id: str) -> Self:
        """Sets the id, for tests."""
        self.extra[ID] = id
        return self

    def id(self) -> str | None:
        """Returns the id of the message that the completion becomes.

        The node should write the message with this id, because clients receive the deltas under it.
        Returns `None` if the host assigns no id, as in a web handler.
        """
        id = self.extra.get(ID)
        return id if isinstance(id, str) else None

    def text(self) -> str:
        """Returns all text parts, joined."""
        return text_of(self.parts)

    def reasoning(self) -> str:
        """Returns all parts of reasoning, joined."""
        return "".join(part.text for part in self.parts if isinstance(part, Reasoning))

    def is_answer(self) -> bool:
        """Returns true if the completion contains text or a tool call.

        A provider can return a completion without either for many reasons, even with
        `FinishReason.STOP`. Reasoning alone does not count.
        """
        return bool(self.tool_calls()) or bool(self.text().strip(WHITESPACE))

    @overload
    def structured_as(self, of: type[T]) -> T: ...

    @overload
    def structured_as(self, of: Any) -> Any: ...

    def structured_as(self, of: Any) -> Any:
        """Returns the structured output as a type.

        Raises `invalid` if the request had no schema, or if the output does not fit the type.
        """
        if self.structured is None:
            raise Failure.invalid("the completion has no structured output; use `Request.schema`")
        what = "the structured output of the completion"
        return _schema.decode(what, of, self.structured)

    def tool_calls(self) -> list[ToolCall]:
        """Returns the tool calls that the model requests."""
        return [part for part in self.parts if isinstance(part, ToolCall)]

    def call_ids(self) -> list[str] | None:
        """Returns an id for each tool call, in order, that no other call of the conversation has.

        A node that writes the calls to the conversation gives them these ids, as `to_stored` does,
        because some models use an id again. Returns `None` for a completion without tool calls, and
        for a request without a history, see `llm.Request.history`.

        `testing.FakeHost` does not know the whole conversation, and returns the ids of the calls
        unless the script sets `call_ids` in `extra`.

        >>> answer = Completion.of_tool_call("call-1", "add", {"a": 1})
        >>> answer.extra["call_ids"] = ["call-1-7"]
        >>> answer.call_ids()
        ['call-1-7']
        """
        ids = self.extra.get(CALL_IDS)
        is_list = isinstance(ids, list) and all(isinstance(it, str) for it in ids)
        return ids if is_list else None

    def attempts(self) -> list[Attempt]:
        """Returns the candidates that the host called, in order. The last one succeeded.

        Empty if the host does not report candidates.
        """
        return attempts_in(self.extra.get("attempts"))

    def provider_state(self) -> dict[str, Any] | None:
        """Returns the opaque data of the provider, such as signatures of reasoning and tool calls.

        Some providers refuse a tool call that comes back without it.
        """
        others = (part.value for part in self.parts if isinstance(part, OtherPart))
        objects = (value for value in others if isinstance(value, dict))
        return next((it for it in objects if it.get("type") == PROVIDER_STATE), None)

    def into_message(self) -> Message:
        """Converts the completion to a message, with which the conversation can continue.

        The extension fields of the message contain the id of the completion.
        """
        extra = {key: value for key, value in self.extra.items() if key == ID}
        return Message(Role.ASSISTANT, self.parts, extra)

    def to_stored(self) -> dict[str, Any]:
        """Converts the completion to a message in the format of the reducer `messages`.

        It contains the id, by which clients recognize the message whose deltas they received, and
        the `provider_state`. Tool calls have the ids of `call_ids`, or else those of the model.

        >>> Completion.of_text("hello").with_id("run--1-0").to_stored()
        {'id': 'run--1-0', 'role': 'assistant', 'content': 'hello'}
        """
        id = self.id()
        message: dict[str, Any] = {} if id is None else {ID: id}
        message["role"] = Role.ASSISTANT
        message["content"] = self.text()
        ids = dict(enumerate(self.call_ids() or []))
        calls = [
            {"id": ids.get(index, call.id), "name": call.name, "arguments": call.arguments}
            for index, call in enumerate(self.tool_calls())
        ]
        if calls:
            message["tool_calls"] = calls
        reasoning = self.reasoning()
        if reasoning:
            message["reasoning"] = reasoning
        state = self.provider_state()
        if state is not None:
            message[PROVIDER_STATE] = state
        return message


def attempts_in(attempts: Any) -> list[Attempt]:
    """Reads the attempts that a completion or the details of a failure contain."""
    return [_attempt(it) for it in attempts] if isinstance(attempts, list) else []


def _attempt(attempt: Any) -> Attempt:
    attempt = attempt if isinstance(attempt, dict) else {}
    error, tries = attempt.get("error"), attempt.get("tries")
    return Attempt(
        str(attempt.get("provider", "")),
        str(attempt.get("model", "")),
        tries if isinstance(tries, int) else 0,
        None if error is None else Failure.from_json(error),
    )
