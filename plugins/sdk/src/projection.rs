//! Table projections: tables of an application that follow the event log of a thread.
//!
//! The log has everything that the runs of a thread did. An application that lists, counts or
//! audits it has tables of its own, and a request applies the new events before it reads them:
//!
//! ```
//! use wattle_plugin::prelude::*;
//! use wattle_plugin::projection::{Cursor, Projection};
//! use wattle_plugin::runs::{Event, EventKind};
//! use wattle_plugin::sql::Transaction;
//! use wattle_plugin::testing::FakeHost;
//!
//! const CASES: Cursor =
//!     Cursor { database: "shop", table: "cases", id: "id", column: "event_cursor" };
//!
//! /// A row of the table, whose id is that of the thread.
//! struct Case {
//!     id: String,
//!     runs: i64,
//!     event_cursor: u64,
//! }
//!
//! impl Projection for Case {
//!     type Change = i64;
//!
//!     fn thread_id(&self) -> &str {
//!         &self.id
//!     }
//!
//!     fn cursor(&self) -> u64 {
//!         self.event_cursor
//!     }
//!
//!     fn fold(&self, events: Vec<Event>) -> Result<Option<(i64, u64)>, Failure> {
//!         let ends = events.iter().filter(|event| matches!(event.kind, EventKind::RunEnded(_)));
//!         let ended = i64::try_from(ends.count())?;
//!         Ok(events.last().map(|last| (ended, last.seq)))
//!     }
//!
//!     fn write(&self, transaction: &Transaction, ended: i64) -> Result<(), Failure> {
//!         let add = "UPDATE cases SET runs = runs + $1 WHERE id = $2";
//!         transaction.execute(add, params![ended, &self.id]).map(|_| ())
//!     }
//!
//!     fn reload(&mut self) -> Result<bool, Failure> {
//!         let select = "SELECT runs, event_cursor FROM cases WHERE id = $1";
//!         let rows = sql::database("shop").query(select, params![&self.id])?;
//!         let Some(row) = rows.first() else { return Ok(false) };
//!         (self.runs, self.event_cursor) = (row.get("runs")?, row.get("event_cursor")?);
//!         Ok(true)
//!     }
//! }
//!
//! # let ended = json!({
//! #     "seq": 1, "at_ms": 1, "run": "r", "type": "run_ended", "status": "completed",
//! # });
//! # let host = FakeHost::new().event("case-7", ended).sql(|_| {
//! #     Ok(sql::Rows::new(["runs", "event_cursor"], vec![params![1, 1]]).into())
//! # });
//! # host.run(|| {
//! let mut case = Case { id: "case-7".to_owned(), runs: 0, event_cursor: 0 };
//! CASES.follow(&mut case)?;
//! assert_eq!((case.runs, case.event_cursor), (1, 1));
//! # Ok::<_, Failure>(())
//! # })?;
//! # Ok::<_, Failure>(())
//! ```
//!
//! One transaction writes the change and moves the cursor of the row, and only from the position
//! that was read. Each event is therefore applied once, however many requests read the row at the
//! same time, and a crash between a run and the tables loses nothing.

pub mod calls;

use serde_json::Value;

use crate::failure::Failure;
use crate::params;
use crate::runs::{self, Event};
use crate::sql::{self, Transaction};

/// Maximum number of attempts to apply new events. Another request can be faster each time, and a
/// run adds further events; the row is then recent enough.
const ATTEMPTS: u32 = 5;

/// Where the rows of threads have their cursors. A cursor is the position in the log after which
/// the next request continues. The names become part of SQL statements, so none of them comes from
/// a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// Name of the database in the manifest of the app.
    pub database: &'static str,
    /// Name of the table.
    pub table: &'static str,
    /// Name of the column with the id of the thread.
    pub id: &'static str,
    /// Name of the column with the cursor: the sequence number of the last event that was applied,
    /// a 64-bit integer. The cursor of a new row is 0.
    pub column: &'static str,
}

/// A table projection of one thread: its row as it was read, and the fold of events into a change
/// of the tables. See the [module](self) for an example.
pub trait Projection {
    /// What new events change in the tables.
    type Change;

    /// Returns the id of the thread, which is also the id of the row.
    fn thread_id(&self) -> &str;

    /// Returns the cursor of the row.
    fn cursor(&self) -> u64;

    /// Returns the sequence number after which the fold needs the events, if it needs some that
    /// were applied before, such as those of the active run. The default is the cursor.
    fn fold_after(&self) -> u64 {
        self.cursor()
    }

    /// Converts an event from JSON. All events of a fold are in memory at once, so an app can omit
    /// what the fold does not need. The default keeps the whole content.
    fn read(&self, event: &Value) -> Result<Event, Failure> {
        Event::read(event)
    }

    /// Returns true if an event changes the tables. Without such an event after the cursor, nothing
    /// is folded, and the cursor stays. By default, each event matters.
    fn matters(&self, _event: &Event) -> bool {
        true
    }

    /// Folds the events into a change. Returns the change and the new cursor: the sequence number
    /// of the last event that is part of the change. Returns `None`, or the same cursor, to wait
    /// for further events. The fold can read the tables and the thread, but its result depends on
    /// nothing else.
    fn fold(&self, events: Vec<Event>) -> Result<Option<(Self::Change, u64)>, Failure>;

    /// Writes a change, in the transaction that has moved the cursor of the row. The transaction
    /// blocks other writers, so this function calls nothing but the database.
    fn write(&self, transaction: &Transaction, change: Self::Change) -> Result<(), Failure>;

    /// Writes that the thread was deleted, in the transaction that has set the cursor to 0. The
    /// events of a new thread with the same id count from 1. By default, nothing else is written.
    ///
    /// A log that ends before the cursor changes nothing, because runs can be deleted without their
    /// thread, and the events before them have been applied. So a new thread with the same id is
    /// not noticed if no request has found the old one missing. An app that deletes the thread of a
    /// row deletes or resets the row as well.
    fn forget(&self, _transaction: &Transaction) -> Result<(), Failure> {
        Ok(())
    }

    /// Reads the row again, after a change by this request or another one. Returns false if the row
    /// no longer exists, which ends [`Cursor::follow`].
    fn reload(&mut self) -> Result<bool, Failure>;
}

impl Cursor {
    /// Applies the new events of a thread to its row, and reads the row again if it has changed.
    ///
    /// # Errors
    ///
    /// The failures of the projection, of the database and of [`runs::all_events`]. A thread that
    /// does not exist is no failure.
    pub fn follow<P: Projection>(&self, row: &mut P) -> Result<(), Failure> {
        for _ in 0..ATTEMPTS {
            if !self.apply(row)? || !row.reload()? {
                break;
            }
        }
        Ok(())
    }

    /// Makes one attempt to apply new events. Returns true if the row in the table differs from the
    /// one that was read.
    fn apply<P: Projection>(&self, row: &P) -> Result<bool, Failure> {
        let cursor = row.cursor();
        let log_after =
            |after: u64| runs::all_events(row.thread_id(), after, |event| row.read(event));
        let Some(mut events) = log_after(cursor)? else { return self.forget(row) };
        if !events.iter().any(|event| row.matters(event)) {
            return Ok(false);
        }
        if row.fold_after() < cursor {
            let Some(all) = log_after(row.fold_after())? else { return self.forget(row) };
            events = all;
        }
        match row.fold(events)? {
            Some((change, last)) if last > cursor => {
                self.advance(row, last, |transaction| row.write(transaction, change))?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Resets the row of a thread that does not exist.
    fn forget<P: Projection>(&self, row: &P) -> Result<bool, Failure> {
        if row.cursor() == 0 {
            return Ok(false);
        }
        self.advance(row, 0, |transaction| row.forget(transaction))?;
        Ok(true)
    }

    /// Moves the cursor and writes, or does neither if another request has moved the cursor.
    fn advance<P: Projection>(
        &self,
        row: &P,
        last: u64,
        write: impl FnOnce(&Transaction) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Self { database, table, id, column } = self;
        let advance = format!("UPDATE {table} SET {column} = $1 WHERE {id} = $2 AND {column} = $3");
        let transaction = sql::database(*database).begin()?;
        let (from, to) = (row.cursor().cast_signed(), last.cast_signed());
        let moved = transaction.execute(&advance, params![to, row.thread_id(), from])?;
        if moved.rows_affected == 0 {
            return transaction.rollback();
        }
        write(&transaction)?;
        transaction.commit()
    }
}

#[cfg(test)]
mod tests;
