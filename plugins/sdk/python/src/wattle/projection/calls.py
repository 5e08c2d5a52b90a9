"""Host calls in an event log, with start and result together.

An audit trail has two rows for a call, and the first one often needs the result, too. A call can
also lose its result, because its run ended or the host was started again. `pairs` gives each call
both of its items and stops before a pending call, and before a call that overlaps it, so that a
`Projection` applies both at once:

>>> call = {"at_ms": 7, "run": "r", "task": "t", "function": "tools.call", "summary": "shop/find"}
>>> ended = {"node": "n", "request": {}, "result": {"Ok": {}}, "duration_us": 5}
>>> log = [
...     {**call, "seq": 1, "type": "call_started", "call": 0},
...     {**call, "seq": 2, "type": "called", "call": 0, **ended},
...     {**call, "seq": 3, "type": "call_started", "call": 1},
... ]
>>> found = pairs([Event.read(event) for event in log], lambda call: call.is_tool())
>>> # The second call is pending.
>>> found.last, [type(item).__name__ for item in found.items]
(2, ['Started', 'Ended'])
>>> found.items[0].called is found.items[1].called
True
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from wattle.runs import Called, CallStarted, Event, RunEnded, RunStarted

__all__ = ["Ended", "Item", "Lost", "Other", "Pairs", "Started", "pairs"]


@dataclass(frozen=True)
class Started:
    """A call started that has a result.

    A call without a start in the log, such as one that was refused, starts with its result.
    """

    event: Event
    """The start, or the result if there is no start."""
    called: Called
    """The call with its result."""


@dataclass(frozen=True)
class Ended:
    """A call returned its result. Its start is an earlier item."""

    event: Event
    """The event of the result."""
    called: Called
    """The call with its result."""


@dataclass(frozen=True)
class Lost:
    """A call started that can get no result."""

    event: Event
    """The start."""
    call: CallStarted
    """The call."""
    end: Event
    """The event after which there is no result: the run ended or was recovered, or the call started
    again."""


@dataclass(frozen=True)
class Other:
    """Another event, or an event of a call that is not paired."""

    event: Event
    """The event."""


Item: TypeAlias = Started | Ended | Lost | Other
"""An item of a log: an event, with the other event of its call."""


@dataclass
class Pairs:
    """The items of a log up to the first pending call, or the first call that overlaps it."""

    items: list[Item] = field(default_factory=list)
    """The items in the order of the log."""
    last: int = 0
    """Sequence number of the last event of the items; 0 if there is none."""


@dataclass
class _Place:
    """What an event is to the calls of a log."""

    items: list[Item]
    """The items of the event; empty for a start whose call has neither ended nor been lost."""
    end: int = -1
    """The index of the result of a start."""


CallId: TypeAlias = tuple[str, tuple[int, ...], int]
"""Task, scope and number of a call."""


def pairs(events: Sequence[Event], is_paired: Callable[[CallStarted | Called], bool]) -> Pairs:
    """Returns the items of consecutive events.

    Calls for which `is_paired` returns false are other events, and are not waited for. The same
    events give the same items, even in several parts, each of which begins after the last event of
    the part before. A part therefore contains a call from its start to its result, and the items
    stop before the first call that overlaps a pending one.
    """
    places = _places(events, is_paired)
    pending = (index for index, place in enumerate(places) if not place.items)
    complete = next(pending, len(places))
    for start in reversed(range(complete)):
        if places[start].end >= complete:
            complete = start
    items = [item for place in places[:complete] for item in place.items]
    return Pairs(items, events[complete - 1].seq if complete else 0)


def _places(
    events: Sequence[Event], is_paired: Callable[[CallStarted | Called], bool]
) -> list[_Place]:
    """Returns what each event is to the calls of the log."""
    places: list[_Place] = []
    # The starts of calls without a result so far, with their indices.
    open_calls: dict[CallId, tuple[CallStarted, int]] = {}

    def lose(call: CallStarted, start: int, end: Event) -> None:
        places[start].items = [Lost(events[start], call, end)]

    for index, event in enumerate(events):
        place = _Place([Other(event)])
        match event.kind:
            case CallStarted() as call:
                before = open_calls.pop(_id(call), None)
                if before is not None:
                    lose(*before, event)
                if is_paired(call):
                    open_calls[_id(call)] = (call, index)
                    place.items = []
            case Called() as called:
                started = open_calls.pop(_id(called), None)
                if started is not None:
                    start = started[1]
                    places[start] = _Place([Started(events[start], called)], index)
                if is_paired(called):
                    ended = Ended(event, called)
                    place.items = [ended] if started else [Started(event, called), ended]
            case RunEnded() | RunStarted():
                for lost in open_calls.values():
                    lose(*lost, event)
                open_calls.clear()
        places.append(place)
    return places


def _id(call: CallStarted | Called) -> CallId:
    return (call.task, tuple(call.scope), call.call)
