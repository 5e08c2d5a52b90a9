"""Tests of rows that follow the log of a thread, with a table in memory, and of pairs of calls."""

import unittest
from dataclasses import dataclass
from typing import Any

from wattle import Failure, code, sql
from wattle.projection import Cursor, Projection
from wattle.projection.calls import Ended, Item, Lost, Started, pairs
from wattle.runs import Custom, Event, RunEnded, Thread
from wattle.sql import Rows, Transaction
from wattle.testing import FakeHost, SqlAnswer, Statement

ROWS = Cursor(database="app", table="rows", id="key", column="seen")
ADVANCE = "UPDATE rows SET seen = $1 WHERE key = $2 AND seen = $3"


@dataclass
class Row(Projection[list[int]]):
    """A row that counts the events of its thread. It needs the whole active run: `after` is the
    event before."""

    cursor: int = 0
    after: int = 0
    ends_only: bool = False
    reloads: int = 0
    thread_id: str = "t"

    def fold_after(self) -> int:
        return self.after

    def read(self, event: Any) -> Event:
        return Event.read({**event, "run": ""})

    def matters(self, event: Event) -> bool:
        return not self.ends_only or isinstance(event.kind, RunEnded)

    def fold(self, events: list[Event]) -> tuple[list[int], int] | None:
        """Stops before a custom event."""
        assert all(event.run == "" for event in events), "the row reads the events"
        done = []
        for event in events:
            if isinstance(event.kind, Custom):
                break
            done.append(event.seq)
        return (done, done[-1]) if done else None

    def write(self, transaction: Transaction, change: list[int]) -> None:
        transaction.execute("INSERT", [str(change)])

    def forget(self, transaction: Transaction) -> None:
        transaction.execute("FORGET")

    def reload(self) -> bool:
        self.reloads += 1
        row = sql.database("app").query("SELECT").first()
        if row is None:
            return False
        self.cursor = row.get("seen", int)
        self.after = max(self.after, self.cursor)
        return True


def event(seq: int, kind: Any) -> Any:
    return {"seq": seq, "at_ms": seq * 10, "run": "r", **kind}


LOG = {"type": "log"}
ENDED = {"type": "run_ended", "status": "completed"}
CUSTOM = {"type": "custom", "node": "n", "name": "found", "data": {}}


def host(kinds: list[Any], stored: int) -> FakeHost:
    """Returns a host with a thread, and a table whose row has the cursor `stored`."""
    table = {"t": stored}

    def answer(statement: Statement) -> SqlAnswer | Rows:
        if statement.text == "SELECT":
            return Rows.new(["seen"], [[table["t"]]])
        if statement.text == ADVANCE:
            to, key, before = statement.parameters
            if table[key] != before:
                return SqlAnswer.affected(0)
            table[key] = to
        return SqlAnswer.affected(1)

    host = FakeHost().sql(answer)
    for seq, kind in enumerate(kinds, 1):
        host.event("t", event(seq, kind))
    return host


def written(host: FakeHost) -> list[str]:
    """Returns the statements without those that read the row, and the parameters of those that
    write what the application has folded."""
    statements = [it for it in host.statements if it.text != "SELECT"]
    assert all(it.in_transaction for it in statements)
    return [
        f"INSERT {it.parameters[0]}" if it.text == "INSERT" else it.text.split(" ")[0]
        for it in statements
    ]


def follow(host: FakeHost, row: Row) -> Row:
    with host:
        ROWS.follow(row)
    return row


class Projections(unittest.TestCase):
    def test_new_events_are_applied_with_the_cursor_in_one_transaction(self) -> None:
        three = [LOG, CUSTOM, ENDED]
        for kinds, row, change, last in (
            (three, Row(), "INSERT [1]", 1),
            (three[:1], Row(ends_only=True), None, 0),
            (three, Row(1, 1), None, 1),
            (three, Row(2, 2, ends_only=True), "INSERT [3]", 3),
            (three, Row(3, 3), None, 3),
            # The whole run is folded again, once an event matters.
            ([ENDED, ENDED], Row(1, 0, ends_only=True), "INSERT [1, 2]", 2),
            ([ENDED, LOG], Row(1, 0, ends_only=True), None, 1),
            ([ENDED] * 300, Row(), f"INSERT {list(range(1, 301))}", 300),
        ):
            fake = host(kinds, row.cursor)
            follow(fake, row)
            self.assertEqual((row.cursor, row.reloads), (last, int(change is not None)))
            expected = [] if change is None else ["BEGIN", "UPDATE", change, "COMMIT"]
            self.assertEqual(written(fake), expected)

    def test_one_of_two_concurrent_requests_applies_an_event(self) -> None:
        # The other request has applied the first event since the row was read.
        fake = host([ENDED, ENDED], 1)
        row = follow(fake, Row())
        self.assertEqual((row.cursor, row.reloads), (2, 2))
        expected = ["BEGIN", "UPDATE", "ROLLBACK", "BEGIN", "UPDATE", "INSERT [2]", "COMMIT"]
        self.assertEqual(written(fake), expected)

    def test_a_request_that_is_always_slower_keeps_the_row_as_it_was_read(self) -> None:
        def answer(statement: Statement) -> SqlAnswer | Rows:
            is_read = statement.text == "SELECT"
            return Rows.new(["seen"], [[0]]) if is_read else SqlAnswer.affected(0)

        fake = FakeHost().event("t", event(1, ENDED)).sql(answer)
        self.assertEqual(follow(fake, Row()), Row(reloads=5))
        self.assertEqual(set(written(fake)), {"BEGIN", "UPDATE", "ROLLBACK"})

    def test_a_deleted_thread_resets_its_row_once(self) -> None:
        reset = ["BEGIN", "UPDATE", "FORGET", "COMMIT"]
        for cursor, expected in ((0, []), (7, reset)):
            fake = host([], cursor)
            self.assertEqual(follow(fake, Row(cursor, cursor)).cursor, 0)
            self.assertEqual(written(fake), expected)
        # Another request has reset it, or its thread is a new one.
        fake = host([], 0)
        follow(fake, Row(7, 7))
        self.assertEqual(written(fake), ["BEGIN", "UPDATE", "ROLLBACK"])

    def test_a_thread_without_new_events_changes_nothing(self) -> None:
        # In the second case, the newest run was deleted, and its events have been applied.
        for fake in (FakeHost().thread(Thread("t", "g", "idle")), host([ENDED, ENDED], 7)):
            self.assertEqual(follow(fake, Row(7, 7)), Row(7, 7))
            self.assertEqual(fake.statements, [])

    def test_a_row_that_is_gone_is_read_once(self) -> None:
        fake = FakeHost().event("t", event(1, ENDED)).sql(lambda _: SqlAnswer())
        self.assertEqual(follow(fake, Row()), Row(reloads=1))

    def test_a_failed_write_moves_no_cursor(self) -> None:
        def answer(statement: Statement) -> SqlAnswer:
            if statement.text == "INSERT":
                raise Failure.unavailable("full")
            return SqlAnswer.affected(1)

        fake = FakeHost().event("t", event(1, ENDED)).sql(answer)
        with self.assertRaises(Failure) as raised:
            follow(fake, Row())
        self.assertEqual(raised.exception.code, code.UNAVAILABLE)
        self.assertEqual(fake.statements[-1].text, "ROLLBACK")


def begun(call: int, function: str = "tools.call", *scope: int) -> Any:
    head = {"type": "call_started", "task": "t", "scope": list(scope), "call": call}
    return {**head, "function": function, "summary": "s"}


def done(call: int, function: str = "tools.call", *scope: int) -> Any:
    head = {"type": "called", "task": "t", "node": "n", "scope": list(scope), "call": call}
    rest = {"request": {}, "result": {"Ok": {}}, "duration_us": 7}
    return {**head, "function": function, **rest}


def run_started(reason: str) -> Any:
    return {"type": "run_started", "graph": "g", "reason": reason}


CANCELLED = {"type": "run_ended", "status": "cancelled"}


def read(kinds: list[Any], first: int = 1) -> tuple[list[str], int]:
    """Returns the items as texts: what they are, and the sequence numbers of their events."""

    def text(item: Item) -> str:
        match item:
            case Started():
                return f"started {item.event.seq}"
            case Ended():
                return f"ended {item.event.seq}"
            case Lost():
                return f"lost {item.event.seq} at {item.end.seq}"
            case _:
                return f"other {item.event.seq}"

    events = [Event.read(event(seq, kind)) for seq, kind in enumerate(kinds, first)]
    found = pairs(events, lambda call: call.is_model() or call.is_tool())
    return [text(item) for item in found.items], found.last


class Calls(unittest.TestCase):
    def test_calls_are_paired_up_to_the_first_pending_one(self) -> None:
        model = [begun(0, "llm.complete", 0), done(0, "llm.complete", 0)]
        four = "started 1, started 2, ended 3, ended 4"
        for log, items, last in (
            ([], "", 0),
            ([run_started("input"), CUSTOM, CANCELLED], "other 1, other 2, other 3", 3),
            ([begun(0), done(0)], "started 1, ended 2", 2),
            # A call batch.
            ([begun(0), begun(1), done(1), done(0)], four, 4),
            # A call of the tool with the number of the tool's call.
            ([begun(0), *model, done(0)], four, 4),
            ([CUSTOM, begun(0), CUSTOM], "other 1", 1),
            ([begun(0), done(0), begun(1), CUSTOM], "started 1, ended 2", 2),
            # Calls that overlap a pending one, directly and by another call.
            ([CUSTOM, begun(0), begun(1), done(0)], "other 1", 1),
            ([begun(0), begun(1), done(0), begun(2), done(1)], "", 0),
            ([begun(0), CANCELLED], "lost 1 at 2, other 2", 2),
            ([begun(0), begun(0), done(0)], "lost 1 at 2, started 2, ended 3", 3),
            (
                [begun(0), run_started("recovery"), begun(0), done(0)],
                "lost 1 at 2, other 2, started 3, ended 4",
                4,
            ),
            # A call that was refused before it started.
            ([done(0)], "started 1, ended 1", 1),
            # Calls that are not paired.
            ([begun(0, "sql.query")], "other 1", 1),
            ([done(0, "http.send")], "other 1", 1),
        ):
            found, found_last = read(log)
            self.assertEqual((", ".join(found), found_last), (items, last), log)

    def test_parts_of_a_log_give_the_items_of_the_whole_log(self) -> None:
        log = [
            run_started("input"),
            begun(0),
            CUSTOM,
            done(0),
            done(1),
            begun(2, "llm.complete"),
            CANCELLED,
            run_started("input"),
            # A call batch.
            begun(3),
            begun(4),
            done(3),
            begun(5),
            done(5),
            done(4),
            CANCELLED,
        ]
        whole, _ = read(log)
        for end in range(len(log)):
            first, last = read(log[:end])
            second, _ = read(log[last:], last + 1)
            self.assertEqual(first + second, whole, f"divided at {end}")


if __name__ == "__main__":
    unittest.main()
