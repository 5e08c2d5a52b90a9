"""The tool calls of a run, from the log of its thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from wattle import _schema
from wattle.chat._stored import ToolCall, calls, field_of, text_of
from wattle.failure import Failure
from wattle.runs import Called, CallStarted, Event, RunEnded, TaskFinished, Write

if TYPE_CHECKING:
    from wattle.chat._agent import Agent

CANCELLED = "the step was cancelled"
"""Error of a step that was cancelled."""

LOST = "the run ended before the step was finished"
"""Error of a step whose run failed."""


class StepStatus(StrEnum):
    """The status of a step."""

    RUNNING = "RUNNING"
    """The tool is running."""
    SUCCESS = "SUCCESS"
    """The tool succeeded."""
    ERROR = "ERROR"
    """The tool failed."""
    CANCELLED = "CANCELLED"
    """The run was cancelled."""


@dataclass
class Step:
    """A tool call of a run."""

    id: str
    """Unique in its thread: task and number of the call, or for a refused one the run and the id
    that the model gave the call."""
    tool: str
    """Name of the tool, without the app or plugin."""
    seq: int
    """Sequence number of the event that started it."""
    started_ms: int
    """Time of that event, in milliseconds since 1970."""
    call_id: str | None = None
    """Id that the model gave the call."""
    status: StepStatus = StepStatus.RUNNING
    """The status."""
    is_refused: bool = False
    """True if no tool executed the call, because its arguments are unreadable, or because there is
    no such tool."""
    input: Any = None
    """Arguments of the call."""
    output: Any = None
    """Structured output of the tool, or its text without one."""
    error: str | None = None
    """Error message of a step that has failed or was cancelled."""
    duration_ms: int | None = None
    """Duration in milliseconds."""
    ended_seq: int | None = None
    """Sequence number of the event that ended it."""
    ended_ms: int | None = None
    """Time of that event, in milliseconds since 1970."""
    writes: list[Write] = field(default_factory=list)
    """Writes of the tool to the state."""

    def last_seq(self) -> int:
        """Returns the sequence number of the event that changed the step last."""
        return self.seq if self.ended_seq is None else self.ended_seq

    def _end(self, event: Event, status: StepStatus, error: str | None = None) -> None:
        self.status = status
        self.error = error
        self.ended_seq, self.ended_ms = event.seq, event.at_ms


def fold(agent: Agent, events: Sequence[Event]) -> list[Step]:
    """Returns the steps of a run, see `Agent.steps`."""
    folding = _Folding()
    for event in events:
        match event.kind:
            case TaskFinished() as task if task.node == agent.model_node:
                messages = agent.written_messages(task)
                folding.requested = [call for message in messages for call in calls(message)]
            case TaskFinished() as task if task.node == agent.tool_node:
                for message in agent.written_messages(task):
                    folding.refuse(event, message)
            case CallStarted() as call if agent.begins_step(call):
                folding.begin(event, call)
            case Called() as called if agent.ends_step(called):
                folding.end(event, called)
            case RunEnded() as ended:
                folding.end_unfinished(event, ended)
    return folding.steps


class _Folding:
    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.places: dict[str, Step] = {}
        """The steps that a tool executes, by their ids."""
        self.requested: list[ToolCall] = []
        """Calls that the model requested last and that have no step yet."""

    def begin(self, event: Event, call: CallStarted) -> None:
        id = f"{call.task}:{call.call}"
        # A call may start again after a restart of the host.
        if id not in self.places:
            self._add(event, id, call.summary)

    def _add(self, event: Event, id: str, reference: str) -> Step:
        tool = _bare(reference)
        # A conversation has the reference of a tool whose bare name is ambiguous.
        requested = self._take(
            lambda call: call.name in (reference, tool) and not isinstance(call.arguments, str)
        )
        step = Step(id, tool, event.seq, event.at_ms)
        if requested is not None:
            step.call_id, step.input = requested.id, requested.arguments
        self.places[id] = step
        self.steps.append(step)
        return step

    def refuse(self, event: Event, message: Any) -> None:
        """Adds the call of a message with a result, if no tool has executed the call."""
        if field_of(message, "role") != "tool":
            return
        call = self._take(lambda call: field_of(message, "tool_call_id") == call.id)
        if call is None:
            return
        step = Step(f"{event.run}:{call.id}", _bare(call.name), event.seq, event.at_ms)
        step.call_id, step.input = call.id, call.arguments
        step._end(event, StepStatus.ERROR, text_of(message.get("content")))
        step.is_refused = True
        step.duration_ms = 0
        self.steps.append(step)

    def end(self, event: Event, called: Called) -> None:
        id = f"{called.task}:{called.call}"
        step = self.places.get(id) or self._add(event, id, called.summary)
        step.duration_ms = called.duration_us // 1_000
        failure = called.failure()
        if failure is not None:
            step._end(event, StepStatus.ERROR, failure.message)
            return
        result = called.output()
        if field_of(result, "is_error") is True:
            step._end(event, StepStatus.ERROR, text_of(field_of(result, "content")))
        else:
            step._end(event, StepStatus.SUCCESS)
            step.output = _output(result)
        step.writes = _writes(field_of(result, "updates"))

    def end_unfinished(self, event: Event, ended: RunEnded) -> None:
        """Ends the steps that have no result when their run ends."""
        for step in self.steps:
            if step.status != StepStatus.RUNNING:
                continue
            if ended.status == "cancelled":
                step._end(event, StepStatus.CANCELLED, CANCELLED)
            else:
                step._end(event, StepStatus.ERROR, LOST)
            step.duration_ms = max(event.at_ms - step.started_ms, 0)

    def _take(self, is_wanted: Callable[[ToolCall], bool]) -> ToolCall | None:
        """Removes the first requested call that fulfills a condition."""
        place = next((at for at, call in enumerate(self.requested) if is_wanted(call)), None)
        return None if place is None else self.requested.pop(place)


def _bare(reference: str) -> str:
    """Returns the name of a tool without the app or plugin."""
    return reference.rpartition("/")[2]


def _output(result: Any) -> Any:
    structured = field_of(result, "structured")
    return text_of(field_of(result, "content")) if structured is None else structured


def _writes(updates: Any) -> list[Write]:
    writes = []
    for update in updates if isinstance(updates, list) else []:
        try:
            writes.append(_schema.decode("the update", Write, update))
        except Failure:
            # A later host may write updates of another kind.
            continue
    return writes
