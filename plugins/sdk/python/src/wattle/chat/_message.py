"""The output of a run as one message of the AI SDK, from the log of its thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wattle._completion import Completion
from wattle.chat._steps import CANCELLED, Step, StepStatus
from wattle.chat._stored import ToolCall, calls, field_of, text_of
from wattle.chat.ui import Role, UiMessage, _part
from wattle.runs import (
    Called,
    CallStarted,
    Delta,
    Event,
    RunEnded,
    RunStarted,
    Streamed,
    TaskFinished,
)

if TYPE_CHECKING:
    from wattle.chat._agent import Agent

PREFIX = "msg_"
"""Prefix of the id of the message, before the id of the run, as in the stream."""

UNREADABLE = "the arguments of the call are not valid JSON"
"""Error of a call whose arguments are not valid JSON, as in the stream."""


def fold(
    agent: Agent, events: Sequence[Event], steps: Sequence[Step], output: Callable[[Any], Any]
) -> UiMessage | None:
    """Returns the output of a run, see `Agent.message`."""
    folding = _Folding()
    for event in events:
        folding.add(agent, event)
    by_call: dict[str, Step] = {}
    for step in steps:
        if step.call_id is not None:
            by_call.setdefault(step.call_id, step)
    is_active = _is_active(events)
    parts: list[dict[str, Any]] = []
    for turn in folding.turns:
        texts = (("reasoning", turn.reasoning), ("text", turn.text))
        found = [_part.assistant_text(kind, text) for kind, text in texts if text]
        for call in turn.requested:
            result = folding.results.get(call.id)
            found.append(_tool(call, by_call.get(call.id), result, is_active, output))
        if found:
            parts += [_part.step_start(), *found]
    return UiMessage(f"{PREFIX}{events[0].run}", Role.ASSISTANT, parts) if parts else None


@dataclass
class _Turn:
    """The output of one model call."""

    call: tuple[str, int]
    """Task and number of the call."""
    text: str = ""
    reasoning: str = ""
    requested: list[ToolCall] = field(default_factory=list)
    """The requested tool calls."""
    is_ended: bool = False

    def restart(self) -> None:
        self.text = self.reasoning = ""

    def apply(self, delta: Delta) -> None:
        if delta.kind == "text":
            self.text += delta.text
        elif delta.kind == "reasoning":
            self.reasoning += delta.text
        elif delta.kind == "restart":
            self.restart()

    def end(self, called: Called) -> None:
        """Replaces the deltas by the whole completion. A failed call keeps its deltas."""
        self.is_ended = True
        completion = called.completion()
        if completion is not None:
            self.text, self.reasoning = completion.text(), completion.reasoning()
            self.requested = _unreadable_calls(completion)


class _Folding:
    def __init__(self) -> None:
        self.turns: list[_Turn] = []
        self.results: dict[str, str] = {}
        """Texts of the results in the conversation, by the id of the call. They have the errors of
        calls that no tool executed."""

    def add(self, agent: Agent, event: Event) -> None:
        match event.kind:
            case RunStarted(reason="recovery"):
                # Model calls that have not ended are made again.
                self.turns = [turn for turn in self.turns if turn.is_ended]
            case CallStarted() as call if agent.begins_turn(call):
                self._turn(call.task, call.call).restart()
            case Streamed() as streamed if agent.streams_turn(streamed):
                turn = self._turn(streamed.task, streamed.call)
                for delta in streamed.deltas:
                    turn.apply(delta)
            case Called() as called if agent.ends_turn(called):
                self._turn(called.task, called.call).end(called)
            case TaskFinished() as task if task.node == agent.model_node:
                # The calls of the conversation have unique ids. A task without a model call, such
                # as one at the turn limit, has no turn.
                last = next((it for it in reversed(self.turns) if it.call[0] == task.task), None)
                if last is not None:
                    messages = agent.written_messages(task)
                    last.requested = [call for message in messages for call in calls(message)]
            case TaskFinished() as task if task.node == agent.tool_node:
                for message in agent.written_messages(task):
                    call_id = field_of(message, "tool_call_id")
                    if isinstance(call_id, str):
                        self.results[call_id] = text_of(message.get("content"))

    def _turn(self, task: str, call: int) -> _Turn:
        known = (turn for turn in reversed(self.turns) if turn.call == (task, call))
        turn = next(known, None)
        if turn is None:
            turn = _Turn((task, call))
            self.turns.append(turn)
        return turn


def _unreadable_calls(completion: Completion) -> list[ToolCall]:
    """Returns the calls of a completion with unreadable arguments.

    The agent may request them again without keeping them in the conversation.
    """
    requested = completion.tool_calls()
    unreadable = (call for call in requested if isinstance(call.arguments, str))
    return [ToolCall(call.id, call.name, call.arguments) for call in unreadable]


def _is_active(events: Sequence[Event]) -> bool:
    """Returns true if the run of the events has not ended."""
    kinds = (event.kind for event in reversed(events))
    last = next((kind for kind in kinds if isinstance(kind, RunStarted | RunEnded)), None)
    return not isinstance(last, RunEnded)


def _tool(
    call: ToolCall,
    step: Step | None,
    result: str | None,
    is_active: bool,
    output: Callable[[Any], Any],
) -> dict[str, Any]:
    """Returns a tool call with what became of it."""
    if step is not None and step.status == StepStatus.SUCCESS:
        return _part.succeeded(call, output(step.output))
    if step is not None:
        error = step.error
    elif result is not None:
        error = result
    else:
        error = UNREADABLE if isinstance(call.arguments, str) else None
    if error is None and is_active:
        return _part.pending(call)
    return _part.failed(call, CANCELLED if error is None else error)
