"""Tools that a plugin provides: their context, arguments and output."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, Self, TypeVar, overload

from wattle import _json, _schema
from wattle._node import Update
from wattle.failure import Failure
from wattle.message import Part, texts_of

STATE = "state"
HINTS = "hints"
REFERENCE = "reference"
UNAVAILABLE = "unavailable"

ALL = "/*"
"""Suffix that marks an entry as an unavailable tool source."""

T = TypeVar("T")


@dataclass
class ToolContext:
    """The context in which a tool is called."""

    tool: str = ""
    """Name of the tool in the plugin."""
    call_id: str = ""
    """Id of the call, with which the caller matches the result."""
    thread_id: str | None = None
    """Id of the thread, if the call belongs to a run."""
    task_id: str | None = None
    """Id of the task, if the call belongs to a run."""
    tenant: str | None = None
    """Tenant of the thread, if it has one."""
    violations: list[str] = field(default_factory=list)
    """Violations of the arguments schema, one sentence per violation; empty if they are valid."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Extension fields."""

    @overload
    def state(self, of: type[T]) -> T: ...

    @overload
    def state(self, of: Any = None) -> Any: ...

    def state(self, of: Any = None) -> Any:
        """Returns the visible state of the caller as a type.

        The agent of the plugin `std` passes the channels that its configuration lists under
        `state`. If the caller passes no state, the type is decoded from an empty object.

        >>> ToolContext().with_state({"total": 3}).state()["total"]
        3
        """
        return _schema.decode("the caller's state", of, self.extra.get(STATE, {}))

    def with_state(self, state: Any) -> Self:
        """Sets the state of the caller, for tests."""
        self.extra[STATE] = state
        return self


@dataclass(frozen=True)
class ToolHints:
    """Hints about the effects of a tool, which its author declares.

    The host does not enforce them. Callers may rely on them, for example to repeat a call after a
    crash.
    """

    read_only: bool = False
    """True if a call has no effects."""
    idempotent: bool = False
    """True if a repeated call with the same arguments has no further effect."""


@dataclass
class ToolInfo:
    """The description of a tool for models."""

    name: str
    """Name of the tool."""
    description: str = ""
    """Description of the tool."""
    arguments_schema: Any = field(default_factory=lambda: dict(_schema.EMPTY_OBJECT))
    """JSON Schema of the arguments."""
    accepts_invalid: bool = False
    """True if the host calls the tool with arguments that violate the schema."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Extension fields."""

    def hints(self) -> ToolHints:
        """Returns the declared hints of the tool. Both are false if it declares none."""
        hints = self.extra.get(HINTS)
        hints = hints if isinstance(hints, dict) else {}
        return ToolHints(hints.get("read_only") is True, hints.get("idempotent") is True)

    def reference(self) -> str | None:
        """Returns the tool reference, such as `date/parse` or `mcp:graph/list`.

        A tool is listed under its bare name while no other granted tool has the same name; its
        reference never changes. Returns `None` for a tool that the host did not list.
        """
        reference = self.extra.get(REFERENCE)
        return reference if isinstance(reference, str) else None

    def with_reference(self, reference: str) -> Self:
        """Sets the tool reference, for tests."""
        self.extra[REFERENCE] = reference
        return self

    @classmethod
    def missing(cls, source: str, failure: Failure) -> Self:
        """Builds the list entry of an unavailable tool source such as `mcp:graph`, for tests."""
        return cls(f"{source}{ALL}", extra={UNAVAILABLE: failure.to_json()})

    def place(self) -> tuple[str, Failure] | None:
        """Returns the name and the failure of an unavailable tool source; `None` for a tool."""
        unavailable = self.extra.get(UNAVAILABLE)
        if unavailable is None:
            return None
        return self.name.removesuffix(ALL), Failure.from_json(unavailable)


@dataclass
class ToolOutput:
    """The output of a tool.

    >>> ToolOutput.json({"sum": 3}).text_content()
    '{"sum":3}'
    """

    content: list[Part] = field(default_factory=list)
    """Content for the model."""
    structured: Any = None
    """Structured output for programs; `None` if there is none."""
    is_error: bool = False
    """True if the content is an error message for the model."""
    updates: list[Update] = field(default_factory=list)
    """Writes to the state of the graph that called the tool."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Extension fields."""

    @classmethod
    def text(cls, text: str) -> Self:
        """Creates an output with a text."""
        return cls([text])

    @classmethod
    def json(cls, value: Any) -> Self:
        """Creates an output from a value.

        It has structured output for programs, and the same JSON as text for the model.
        """
        text = _json.write("the output of the tool", value)
        return cls([text], structured=_json.read("the output of the tool", text))

    @classmethod
    def error(cls, text: str) -> Self:
        """Creates an error message for the model, which can react to it."""
        return cls([text], is_error=True)

    def with_part(self, part: Part) -> Self:
        """Adds a part to the content, such as an image."""
        self.content.append(part)
        return self

    def with_update(self, channel: str, value: Any) -> Self:
        """Writes to a channel of the graph that called the tool."""
        self.updates.append(Update(channel, value))
        return self

    def with_overwrite(self, channel: str, value: Any) -> Self:
        """Overwrites a channel of the graph that called the tool.

        If several calls of one task overwrite a channel, the last one takes effect.
        """
        self.updates.append(Update(channel, value, overwrite=True))
        return self

    def text_content(self) -> str:
        r"""Returns all text parts, with a line break between them.

        >>> ToolOutput.text("BRK.B 12").with_part("AAPL 7").text_content()
        'BRK.B 12\nAAPL 7'
        """
        return "\n".join(texts_of(self.content))

    @overload
    def structured_as(self, of: type[T]) -> T: ...

    @overload
    def structured_as(self, of: Any) -> Any: ...

    def structured_as(self, of: Any) -> Any:
        """Returns the structured output as a type.

        Raises `invalid` if the tool returned no structured output, or if it does not fit the type.
        """
        if self.structured is None:
            raise Failure.invalid("the tool returned no structured output; read its text instead")
        return _schema.decode("the output of the tool", of, self.structured)


def output_of(returned: Any) -> ToolOutput:
    """Converts what a tool returned: an output, a text, or a value that becomes JSON."""
    if isinstance(returned, ToolOutput):
        return returned
    return ToolOutput.text(returned) if isinstance(returned, str) else ToolOutput.json(returned)


class Unchecked(Generic[T]):
    """Arguments of a tool that also accepts arguments that violate its schema.

    A tool with a single parameter of this type gets the arguments as the caller passed them.
    """

    raw: Any
    """The arguments as the caller passed them."""
    violations: list[str]
    """Violations of the schema of the type, one sentence each; empty if the arguments are valid."""

    def __init__(self, of: Any, raw: Any, violations: list[str] | None = None) -> None:
        """Creates arguments of a type, for tests and for tools that call other tools."""
        self._of = of
        self.raw = raw
        self.violations = list(violations or [])

    def parse(self) -> T:
        """Returns the arguments as the type.

        Raises `invalid` if the arguments do not fit the type.
        """
        arguments: T = _schema.decode("the arguments", self._of, self.raw)
        return arguments
