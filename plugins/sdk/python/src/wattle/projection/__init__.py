"""Table projections: tables of an application that follow the event log of a thread.

The log has everything that the runs of a thread did. An application that lists, counts or audits it
has tables of its own, and a request applies the new events before it reads them:

>>> from dataclasses import dataclass
>>> from wattle import runs, sql
>>> from wattle.testing import FakeHost, SqlAnswer
>>> CASES = Cursor(database="shop", table="cases", id="id", column="event_cursor")
>>> @dataclass
... class Case(Projection[int]):
...     "A row of the table, whose id is that of the thread."
...     thread_id: str
...     runs: int = 0
...     cursor: int = 0
...     def fold(self, events):
...         ended = sum(isinstance(event.kind, runs.RunEnded) for event in events)
...         return ended, events[-1].seq
...     def write(self, transaction, change):
...         add = "UPDATE cases SET runs = runs + $1 WHERE id = $2"
...         transaction.execute(add, [change, self.thread_id])
...     def reload(self):
...         select = "SELECT runs, event_cursor FROM cases WHERE id = $1"
...         row = sql.database("shop").query(select, [self.thread_id]).first()
...         if row is None:
...             return False
...         self.runs, self.cursor = row.get("runs", int), row.get("event_cursor", int)
...         return True
>>> event = {"seq": 1, "at_ms": 1, "run": "r", "type": "run_ended", "status": "completed"}
>>> rows = sql.Rows.new(["runs", "event_cursor"], [[1, 1]])
>>> case = Case("case-7")
>>> with FakeHost().event("case-7", event).sql(lambda statement: SqlAnswer(rows, 1)):
...     CASES.follow(case)
>>> case.runs, case.cursor
(1, 1)

One transaction writes the change and moves the cursor of the row, and only from the position that
was read. Each event is therefore applied once, however many requests read the row at the same time,
and a crash between a run and the tables loses nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from wattle import runs, sql
from wattle.projection import calls
from wattle.runs import Event
from wattle.sql import Transaction

__all__ = ["Cursor", "Projection", "calls"]

ATTEMPTS = 5
"""Maximum number of attempts to apply new events. Another request can be faster each time, and a
run adds further events; the row is then recent enough."""

C = TypeVar("C")


class Projection(ABC, Generic[C]):
    """A table projection of one thread.

    It is the row of the thread as it was read, and the fold of events into a change of the tables.
    See the module for an example.
    """

    thread_id: str
    """Id of the thread, which is also the id of the row."""
    cursor: int
    """Cursor of the row."""

    def fold_after(self) -> int:
        """Returns the sequence number after which the fold needs the events.

        It may need some that were applied before, such as those of the active run. The default is
        the cursor.
        """
        return self.cursor

    def read(self, event: Any) -> Event:
        """Converts an event from JSON.

        All events of a fold are in memory at once, so an app can omit what the fold does not need.
        The default keeps the whole content.
        """
        return Event.read(event)

    def matters(self, event: Event) -> bool:
        """Returns true if an event changes the tables.

        Without such an event after the cursor, nothing is folded, and the cursor stays. By default,
        each event matters.
        """
        return True

    @abstractmethod
    def fold(self, events: list[Event]) -> tuple[C, int] | None:
        """Folds the events, of which there is at least one, into a change.

        Returns the change and the new cursor: the sequence number of the last event that is part of
        the change. Returns `None`, or the same cursor, to wait for further events. The fold can
        read the tables and the thread, but its result depends on nothing else.
        """

    @abstractmethod
    def write(self, transaction: Transaction, change: C) -> None:
        """Writes a change, in the transaction that has moved the cursor of the row.

        The transaction blocks other writers, so this method calls nothing but the database.
        """

    def forget(self, transaction: Transaction) -> None:  # noqa: B027
        """Writes that the thread was deleted, in the transaction that has set the cursor to 0.

        The events of a new thread with the same id count from 1. By default, nothing else is
        written.

        A log that ends before the cursor changes nothing, because runs can be deleted without their
        thread, and the events before them have been applied. So a new thread with the same id is
        not noticed if no request has found the old one missing. An app that deletes the thread of a
        row deletes or resets the row as well.
        """

    @abstractmethod
    def reload(self) -> bool:
        """Reads the row again, after a change by this request or another one.

        Returns false if the row no longer exists, which ends `Cursor.follow`.
        """


@dataclass(frozen=True)
class Cursor:
    """Where the rows of threads have their cursors.

    A cursor is the position in the log after which the next request continues. The names become
    part of SQL statements, so none of them comes from a request.
    """

    database: str
    """Name of the database in the manifest of the app."""
    table: str
    """Name of the table."""
    id: str
    """Name of the column with the id of the thread."""
    column: str
    """Name of the column with the cursor: the sequence number of the last event that was applied,
    a 64-bit integer. The cursor of a new row is 0."""

    def follow(self, row: Projection[Any]) -> None:
        """Applies the new events of a thread to its row, and reads the row again if it has changed.

        Raises the failures of the projection, of the database and of `runs.all_events`. A thread
        that does not exist is no failure.
        """
        for _ in range(ATTEMPTS):
            if not self._apply(row) or not row.reload():
                break

    def _apply(self, row: Projection[Any]) -> bool:
        """Makes one attempt to apply new events.

        Returns true if the row in the table differs from the one that was read.
        """
        cursor = row.cursor
        events = runs.all_events(row.thread_id, cursor, row.read)
        if events is None:
            return self._forget(row)
        if not any(row.matters(event) for event in events):
            return False
        if row.fold_after() < cursor:
            events = runs.all_events(row.thread_id, row.fold_after(), row.read)
            if events is None:
                return self._forget(row)
        folded = row.fold(events) if events else None
        if folded is None or folded[1] <= cursor:
            return False
        change, last = folded
        self._advance(row, last, lambda transaction: row.write(transaction, change))
        return True

    def _forget(self, row: Projection[Any]) -> bool:
        """Resets the row of a thread that does not exist."""
        if row.cursor == 0:
            return False
        self._advance(row, 0, row.forget)
        return True

    def _advance(
        self, row: Projection[Any], last: int, write: Callable[[Transaction], None]
    ) -> None:
        """Moves the cursor and writes, or does neither if another request has moved the cursor."""
        column = self.column
        advance = f"UPDATE {self.table} SET {column} = $1 WHERE {self.id} = $2 AND {column} = $3"
        with sql.database(self.database).begin() as transaction:
            moved = transaction.execute(advance, [last, row.thread_id, row.cursor])
            if moved.rows_affected == 0:
                transaction.rollback()
                return
            write(transaction)
            transaction.commit()
