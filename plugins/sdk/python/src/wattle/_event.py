"""Events of a thread as types."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

from wattle import _schema
from wattle._completion import Completion
from wattle._logged import logged_completion
from wattle.failure import Failure

MODEL_CALLS = ("llm.complete", "llm.stream")
"""The host functions that call a model."""

TOOL_CALL = "tools.call"
"""The host function that calls a tool."""


@dataclass
class RunStarted:
    """A run started, or continued after an answer or a restart of the host."""

    graph: str
    """Name of the graph."""
    reason: str
    """`input`, `resume`, `recovery`, `retry` or `fork`."""


@dataclass
class RunEnded:
    """A run ended or was interrupted."""

    status: str
    """Run status: `completed`, `interrupted`, `failed` or `cancelled`."""
    failure: dict[str, Any] | None = None
    """Failure of a failed run as JSON, see `Failure.from_json`."""


@dataclass
class Write:
    """A write to a channel."""

    channel: str
    """Name of the channel."""
    value: Any
    """The written value."""


@dataclass
class TaskFinished:
    """A task finished."""

    task: str
    """Id of the task."""
    node: str
    """Node of the task."""
    writes: list[Write]
    """Writes of the task, in order."""


@dataclass
class _HostCall:
    """What the events of host calls share."""

    function: str
    """Function that is called, as interface and name."""

    def is_model(self) -> bool:
        """Returns true for a model call."""
        return self.function in MODEL_CALLS

    def is_tool(self) -> bool:
        """Returns true for a tool call."""
        return self.function == TOOL_CALL


@dataclass
class CallStarted(_HostCall):
    """A potentially slow host call started (model, HTTP, SQL, tool)."""

    task: str
    """Id of the task."""
    call: int
    """Number of the call in its scope."""
    summary: str
    """Summary in one line; for a tool call, the name of the tool."""
    scope: list[int] = field(default_factory=list)
    """Scope of the call.

    Empty for a call of the node itself, `[n]` for calls within the tool that the node called with
    its call number `n`.
    """


@dataclass
class Delta:
    """A delta of a completion."""

    kind: str
    """`text`, `reasoning`, `restart`, which discards the deltas of the call so far, or another."""
    text: str = ""
    """The added text."""


@dataclass
class Streamed:
    """Deltas of a completion arrived."""

    task: str
    """Id of the task."""
    node: str
    """Node of the task."""
    call: int
    """Number of the model call in its scope."""
    deltas: list[Delta]
    """The deltas, in order."""
    scope: list[int] = field(default_factory=list)
    """See `CallStarted.scope`."""


@dataclass
class Called(_HostCall):
    """A host call returned an output or failed."""

    task: str
    """Id of the task."""
    node: str
    """Node of the task."""
    call: int
    """Number of the call in its scope."""
    request: Any
    """The request. If it is large, only its beginning. A model request with a long history has
    `history` in place of the messages that the host adds."""
    result: dict[str, Any]
    """The output under `Ok`, or the failure under `Err`, see `output` and `failure`."""
    duration_us: int
    """Duration in microseconds."""
    scope: list[int] = field(default_factory=list)
    """See `CallStarted.scope`."""
    summary: str = ""
    """Summary in one line; for a tool call, the name of the tool."""

    def output(self) -> Any:
        """Returns the output. Raises the failure of a call that failed."""
        failure = self.failure()
        if failure is not None:
            raise failure
        return self.result.get("Ok")

    def failure(self) -> Failure | None:
        """Returns the failure of a call that failed."""
        return Failure.from_json(self.result["Err"]) if "Err" in self.result else None

    def completion(self) -> Completion | None:
        """Returns the completion of a model call.

        Returns `None` for another call, for a call that failed, and for an output that is not the
        JSON of a completion.
        """
        return logged_completion(self.result.get("Ok")) if self.is_model() else None


@dataclass
class Custom:
    """A node emitted a custom event."""

    node: str
    """Node that emitted the event."""
    name: str
    """Name of the event."""
    data: Any
    """Data of the event."""


@dataclass
class OtherEvent:
    """An event that this version of the SDK does not know."""

    type: str
    """Type of the event."""
    event: dict[str, Any]
    """The event as JSON."""


EventKind: TypeAlias = (
    RunStarted | RunEnded | TaskFinished | CallStarted | Streamed | Called | Custom | OtherEvent
)
"""The kind of an event, with its content."""

KINDS: dict[str, type] = {
    "run_started": RunStarted,
    "run_ended": RunEnded,
    "task_finished": TaskFinished,
    "call_started": CallStarted,
    "streamed": Streamed,
    "called": Called,
    "custom": Custom,
}


@dataclass
class _Head:
    seq: int
    at_ms: int
    run: str
    type: str
    namespace: str = ""


@dataclass
class Event:
    """An event of a thread, see `events`."""

    seq: int
    """Sequence number in the log, from 1 without gaps."""
    at_ms: int
    """Time in milliseconds since 1970, from the clock of the host."""
    run: str
    """Id of the run that the event belongs to."""
    namespace: str
    """Namespace of the subgraph; empty for the root graph."""
    kind: EventKind
    """Kind and content of the event."""

    @classmethod
    def read(cls, event: Any) -> Self:
        """Converts an event from JSON. Raises `invalid` if the value is not an event."""
        head: _Head = _schema.decode("event", _Head, event)
        of = KINDS.get(head.type)
        kind = OtherEvent(head.type, event) if of is None else _schema.decode("event", of, event)
        return cls(head.seq, head.at_ms, head.run, head.namespace, kind)


_schema.prepare(reads=(_Head, *KINDS.values()))
