"""The events of an agent in the log of a thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from wattle.chat import _message, _steps
from wattle.chat._steps import Step
from wattle.chat.ui import UiMessage
from wattle.runs import (
    Called,
    CallStarted,
    Event,
    OtherEvent,
    RunEnded,
    RunStarted,
    Streamed,
    TaskFinished,
)


@dataclass(frozen=True)
class Agent:
    """The nodes of an agent and the channel with its conversation.

    By these, its events are found in the log of a thread. `steps` and `message` are for an app that
    stores conversations in tables. They are pure: the same events give the same results, so an app
    can apply a log again after a crash. The log has more than the channel, such as the text of a
    model call that was cancelled.

    The start of a call does not name its node, so no other node of the graph may call tools: their
    calls would be steps without a result.

    >>> agent = Agent(model_node="writer")
    >>> # A run that is cancelled during a tool call.
    >>> log = [
    ...     {"type": "streamed", "task": "t1", "node": "writer", "call": 0,
    ...         "deltas": [{"kind": "text", "text": "Let me add them."}]},
    ...     {"type": "call_started", "task": "t2", "call": 0, "function": "tools.call",
    ...         "summary": "notes/add"},
    ...     {"type": "run_ended", "status": "cancelled"},
    ... ]
    >>> head = {"at_ms": 5, "run": "run-7"}
    >>> events = [agent.read({"seq": seq, **head, **it}) for seq, it in enumerate(log, 1)]
    >>> (step,) = agent.steps(events)
    >>> step.tool, step.status.value
    ('add', 'CANCELLED')
    >>> message = agent.message(events, [step], lambda output: output)
    >>> message.id, message.text()
    ('msg_run-7', 'Let me add them.')
    """

    DEFAULT: ClassVar[Agent]
    """The names of a graph with the nodes of the plugin `std`."""

    model_node: str = "agent"
    """The node that calls the model."""
    tool_node: str = "tools"
    """The node that calls the tools."""
    channel: str = "messages"
    """The channel with the conversation, which has the reducer `messages`."""

    def read(self, event: Any) -> Event:
        """Reads an event and drops what an agent does not need.

        These are writes to other channels, and outputs of other calls, which can be long documents.
        `steps` and `message` return the same for events with and without it. Raises `invalid` if
        the value is not an event.
        """
        found = Event.read(event)
        match found.kind:
            case TaskFinished(writes=writes) as task:
                kept = [write for write in writes if write.channel == self.channel]
                found.kind = replace(task, writes=kept)
            case Called() as called if not self.ends_step(called) and not self.ends_turn(called):
                found.kind = OtherEvent("called", {})
        return found

    def steps(self, events: Sequence[Event]) -> list[Step]:
        """Returns the steps of a run, in order.

        They are its tool calls, with those that got an error without a tool. A step without a
        result ends with its run. The events are those of the run, from its first one.
        """
        return _steps.fold(self, events)

    def message(
        self, events: Sequence[Event], steps: Sequence[Step], output: Callable[[Any], Any]
    ) -> UiMessage | None:
        """Returns the output of a run as one message; `None` for a run without output.

        It equals the message that a page builds from the host's stream of the format
        `StreamFormat.AI_SDK`, even if no client has read the stream. A model call that was
        cancelled has its text so far, and a tool call without a result is pending until the run
        ends.

        The events are those of the run, from its first one, and `steps` are its `steps`. `output`
        returns the output of a tool as the app stores it.
        """
        return _message.fold(self, events, steps, output)

    def is_progress(self, event: Event) -> bool:
        """Returns true if an event begins or ends a run or a step.

        Most events do not, such as deltas of texts.
        """
        match event.kind:
            case RunStarted() | RunEnded():
                return True
            case CallStarted() as call:
                return self.begins_step(call)
            case Called() as called:
                return self.ends_step(called)
            case _:
                return False

    def begins_step(self, call: CallStarted) -> bool:
        """Returns true if a node calls a tool. Calls that tools make are not steps."""
        return not call.scope and call.is_tool()

    def ends_step(self, called: Called) -> bool:
        """Returns true if a tool call has ended."""
        return not called.scope and called.node == self.tool_node and called.is_tool()

    def begins_turn(self, call: CallStarted) -> bool:
        """Returns true if a node calls a model."""
        return not call.scope and call.is_model()

    def ends_turn(self, called: Called) -> bool:
        """Returns true if a model call of the conversation has ended."""
        return not called.scope and called.node == self.model_node and called.is_model()

    def streams_turn(self, streamed: Streamed) -> bool:
        """Returns true if deltas are those of a model call of the conversation."""
        return not streamed.scope and streamed.node == self.model_node

    def written_messages(self, task: TaskFinished) -> Iterator[Any]:
        """Returns the messages that a task has written."""
        for write in task.writes:
            if write.channel == self.channel:
                yield from write.value if isinstance(write.value, list) else [write.value]


Agent.DEFAULT = Agent()
