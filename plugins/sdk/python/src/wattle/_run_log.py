"""The log of a thread: all of its events, and those of each run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, cast

from wattle import _host
from wattle import code as codes
from wattle._event import Event, RunEnded
from wattle.failure import Failure

PAGE_EVENTS = 256
"""Maximum number of events that one call of `events` returns."""


@dataclass
class RunLog:
    """The events of one run, see `by_run`."""

    id: str
    """Id of the run."""
    events: list[Event]
    """Events in order, at least one."""

    def ended(self) -> tuple[Event, RunEnded] | None:
        """Returns the event that ended the run, with its content; `None` during the run."""
        for event in reversed(self.events):
            if isinstance(event.kind, RunEnded):
                return event, event.kind
        return None


def events(thread_id: str, after: int, limit: int) -> list[Any]:
    """Returns at most `limit` events of a thread after a sequence number, as JSON.

    Never returns more than `PAGE_EVENTS`. Fewer are returned if they are large; only an empty list
    is the end of the log. `Event.read` converts them, and `all_events` reads all pages.
    """
    return cast(list[Any], _host.interface("runs").events(thread_id, after, limit))


def all_events(
    thread_id: str, after: int = 0, read: Callable[[Any], Event] = Event.read
) -> list[Event] | None:
    """Returns all events of a thread after a sequence number.

    Returns `None` if there is no such thread. `read` converts each event. `Event.read` keeps all of
    its content; a function of the app can omit large requests and outputs that the app does not
    use.

    >>> from wattle.testing import FakeHost
    >>> head = {"at_ms": 5, "run": "run-7"}
    >>> started = {"seq": 1, "type": "run_started", "graph": "notes", "reason": "input", **head}
    >>> ended = {"seq": 2, "type": "run_ended", "status": "completed", **head}
    >>> with FakeHost().event("t", started).event("t", ended):
    ...     (log,) = by_run(all_events("t") or [])
    >>> event, content = log.ended()
    >>> log.id, event.seq, content.status
    ('run-7', 2, 'completed')
    """
    found: list[Event] = []
    while True:
        try:
            page = events(thread_id, after, PAGE_EVENTS)
        except Failure as failure:
            if failure.code == codes.NOT_FOUND:
                return None
            raise
        if not page:
            return found
        for event in page:
            after = _number(event)
            found.append(read(event))


def by_run(events: Iterable[Event]) -> list[RunLog]:
    """Groups consecutive events of a run, in the order of the log.

    A run whose events are interrupted by those of another one has several groups.
    """
    logs: list[RunLog] = []
    for event in events:
        if logs and logs[-1].id == event.run:
            logs[-1].events.append(event)
        else:
            logs.append(RunLog(event.run, [event]))
    return logs


def _number(event: Any) -> int:
    """Returns the sequence number of an event."""
    seq = event.get("seq") if isinstance(event, dict) else None
    if type(seq) is int:
        return seq
    raise Failure.invalid("the number of an event is invalid: must be integer")
