//! Tests of rows that follow the log of a thread, with a table in memory.

use std::cell::Cell;
use std::rc::Rc;

use serde_json::{Value, json};

use super::{Cursor, Projection};
use crate::failure::{Failure, code};
use crate::params;
use crate::runs::{Event, EventKind, Thread};
use crate::sql::{self, Rows, Transaction};
use crate::testing::{FakeHost, SqlAnswer, Statement};

const ROWS: Cursor = Cursor { database: "app", table: "rows", id: "key", column: "seen" };

/// A row that counts the events of its thread. It needs the whole active run: `after` is the event
/// before.
#[derive(Debug, Default, PartialEq)]
struct Row {
    cursor: u64,
    after: u64,
    /// Only ends of runs matter.
    ends_only: bool,
    reloads: u32,
}

impl Projection for Row {
    type Change = Vec<u64>;

    fn thread_id(&self) -> &'static str {
        "t"
    }

    fn cursor(&self) -> u64 {
        self.cursor
    }

    fn fold_after(&self) -> u64 {
        self.after
    }

    fn read(&self, event: &Value) -> Result<Event, Failure> {
        Event::read(event).map(|event| Event { run: String::new(), ..event })
    }

    fn matters(&self, event: &Event) -> bool {
        !self.ends_only || matches!(event.kind, EventKind::RunEnded(_))
    }

    /// Stops before a custom event.
    fn fold(&self, events: Vec<Event>) -> Result<Option<(Vec<u64>, u64)>, Failure> {
        assert!(events.iter().all(|event| event.run.is_empty()), "the row reads the events");
        let is_done = |event: &&Event| !matches!(event.kind, EventKind::Custom(_));
        let done: Vec<u64> = events.iter().take_while(is_done).map(|event| event.seq).collect();
        Ok(done.last().copied().map(|last| (done, last)))
    }

    fn write(&self, transaction: &Transaction, change: Vec<u64>) -> Result<(), Failure> {
        transaction.execute("INSERT", params![format!("{change:?}")]).map(|_| ())
    }

    fn forget(&self, transaction: &Transaction) -> Result<(), Failure> {
        transaction.execute("FORGET", params![]).map(|_| ())
    }

    fn reload(&mut self) -> Result<bool, Failure> {
        self.reloads += 1;
        let rows = sql::database("app").query("SELECT", params![])?;
        let Some(row) = rows.first() else { return Ok(false) };
        self.cursor = row.get("seen")?;
        self.after = self.after.max(self.cursor);
        Ok(true)
    }
}

fn event(seq: u64, kind: &Value) -> Value {
    let mut event = json!({"seq": seq, "at_ms": 1, "run": "r"});
    for (name, value) in kind.as_object().unwrap() {
        event[name] = value.clone();
    }
    event
}

fn ended() -> Value {
    json!({"type": "run_ended", "status": "completed"})
}

fn custom() -> Value {
    json!({"type": "custom", "node": "n", "name": "found", "data": {}})
}

/// Returns a host with a thread, and a table whose row has the cursor `stored`.
fn host(kinds: &[Value], stored: u64) -> FakeHost {
    let stored = Rc::new(Cell::new(stored.cast_signed()));
    let answer = move |statement: &Statement| -> Result<SqlAnswer, Failure> {
        let text = statement.text.as_str();
        match (text, statement.parameters.as_slice()) {
            ("SELECT", _) => {
                return Ok(Rows::new(["seen"], vec![params![stored.get()]]).into());
            }
            ("INSERT" | "FORGET", _) => {}
            (
                "UPDATE rows SET seen = $1 WHERE key = $2 AND seen = $3",
                [sql::Value::Integer(to), sql::Value::Text(key), sql::Value::Integer(from)],
            ) => {
                assert_eq!(key, "t");
                if stored.get() != *from {
                    return Ok(SqlAnswer::affected(0));
                }
                stored.set(*to);
            }
            other => panic!("{other:?}"),
        }
        Ok(SqlAnswer::affected(1))
    };
    let numbered = kinds.iter().zip(1..).map(|(kind, seq)| event(seq, kind));
    numbered.fold(FakeHost::new().sql(answer), |host, event| host.event("t", event))
}

/// Returns the statements without those that read the row, and the parameters of those that write
/// what the application has folded.
fn written(host: &FakeHost) -> Vec<String> {
    let statements = host.statements().into_iter().filter(|it| it.text != "SELECT");
    let text = |statement: Statement| {
        assert!(statement.in_transaction, "{statement:?}");
        match (statement.text.split(' ').next().unwrap(), statement.parameters.first()) {
            ("INSERT", Some(sql::Value::Text(change))) => format!("INSERT {change}"),
            (verb, _) => verb.to_owned(),
        }
    };
    statements.map(text).collect()
}

#[test]
fn new_events_are_applied_with_the_cursor_in_one_transaction() {
    let three = [json!({"type": "log"}), custom(), ended()];
    let many = vec![ended(); 300];
    let whole = format!("INSERT {:?}", (1..=300).collect::<Vec<u64>>());
    let row = |cursor, after, ends_only| Row { cursor, after, ends_only, reloads: 0 };
    for (kinds, before, change, last) in [
        (&three[..], row(0, 0, false), Some("INSERT [1]"), 1),
        (&three[..1], row(0, 0, true), None, 0),
        (&three[..], row(1, 1, false), None, 1),
        (&three[..], row(2, 2, true), Some("INSERT [3]"), 3),
        (&three[..], row(3, 3, false), None, 3),
        // The whole run is folded again, once an event matters.
        (&[ended(), ended()][..], row(1, 0, true), Some("INSERT [1, 2]"), 2),
        (&[ended(), json!({"type": "log"})][..], row(1, 0, true), None, 1),
        (&many[..], row(0, 0, false), Some(whole.as_str()), 300),
    ] {
        let host = host(kinds, before.cursor);
        let mut followed = before;
        host.run(|| ROWS.follow(&mut followed)).unwrap();
        assert_eq!(followed.cursor, last, "{change:?}");
        let expected = change.map(|change| vec!["BEGIN", "UPDATE", change, "COMMIT"]);
        assert_eq!(written(&host), expected.unwrap_or_default());
        assert_eq!(followed.reloads, u32::from(change.is_some()), "{change:?}");
    }
}

#[test]
fn one_of_two_concurrent_requests_applies_an_event() {
    // The other request has applied the first event since the row was read.
    let host = host(&[ended(), ended()], 1);
    let mut row = Row::default();
    host.run(|| ROWS.follow(&mut row)).unwrap();
    assert_eq!((row.cursor, row.reloads), (2, 2));
    let expected = ["BEGIN", "UPDATE", "ROLLBACK", "BEGIN", "UPDATE", "INSERT [2]", "COMMIT"];
    assert_eq!(written(&host), expected);
}

#[test]
fn a_request_that_is_always_slower_keeps_the_row_as_it_was_read() {
    let slow = FakeHost::new().event("t", event(1, &ended())).sql(|statement| {
        let is_read = statement.text == "SELECT";
        let row = Rows::new(["seen"], vec![params![0]]);
        Ok(if is_read { row.into() } else { SqlAnswer::affected(0) })
    });
    let mut row = Row::default();
    slow.run(|| ROWS.follow(&mut row)).unwrap();
    assert_eq!(row, Row { reloads: 5, ..Row::default() });
    assert!(!written(&slow).iter().any(|it| it.starts_with("INSERT") || it == "COMMIT"));
}

#[test]
fn a_deleted_thread_resets_its_row_once() {
    let reset = ["BEGIN", "UPDATE", "FORGET", "COMMIT"];
    for (cursor, expected) in [(0, &reset[..0]), (7, &reset[..])] {
        let host = host(&[], cursor);
        let mut row = Row { cursor, after: cursor, ..Row::default() };
        host.run(|| ROWS.follow(&mut row)).unwrap();
        assert_eq!(row.cursor, 0);
        assert_eq!(written(&host), expected);
    }
    // Another request has reset it, or its thread is a new one.
    let host = host(&[], 0);
    let mut row = Row { cursor: 7, after: 7, ..Row::default() };
    host.run(|| ROWS.follow(&mut row)).unwrap();
    assert_eq!(written(&host), ["BEGIN", "UPDATE", "ROLLBACK"]);
}

#[test]
fn a_thread_without_new_events_changes_nothing() {
    let host = FakeHost::new().thread(Thread::new("t", "g", "idle", json!({})));
    let mut row = Row { cursor: 7, after: 7, ..Row::default() };
    host.run(|| ROWS.follow(&mut row)).unwrap();
    assert_eq!((row.cursor, row.reloads), (7, 0));
    assert!(host.statements().is_empty());
}

/// The events before the deleted run have been applied.
#[test]
fn a_thread_whose_newest_run_was_deleted_changes_nothing() {
    let host = host(&[ended(), ended()], 7);
    let mut row = Row { cursor: 7, after: 7, ..Row::default() };
    host.run(|| ROWS.follow(&mut row)).unwrap();
    assert_eq!((row.cursor, row.reloads), (7, 0));
    assert!(host.statements().is_empty());
}

#[test]
fn a_row_that_is_gone_is_read_once() {
    let host = FakeHost::new().event("t", event(1, &ended())).sql(|_| Ok(SqlAnswer::default()));
    let mut row = Row::default();
    host.run(|| ROWS.follow(&mut row)).unwrap();
    assert_eq!(row, Row { reloads: 1, ..Row::default() });
}

#[test]
fn a_failed_write_moves_no_cursor() {
    let host = FakeHost::new().event("t", event(1, &ended())).sql(|statement| {
        let is_write = statement.text == "INSERT";
        if is_write { Err(Failure::unavailable("full")) } else { Ok(SqlAnswer::affected(1)) }
    });
    let failure = host.run(|| ROWS.follow(&mut Row::default())).unwrap_err();
    assert_eq!(failure.code, code::UNAVAILABLE);
    assert_eq!(host.statements().last().unwrap().text, "ROLLBACK");
}
