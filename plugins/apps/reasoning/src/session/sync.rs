//! Synchronizes the tables with the runs, from the event log of the session's thread.
//!
//! A request that reads a session applies the new events first.

use std::collections::BTreeMap;

use wattle_plugin::prelude::{Failure, Value, json, params, runs, sql};
use wattle_plugin::projection::{Cursor, Projection};
use wattle_plugin::runs::{Event, Thread};
use wattle_plugin::sql::Transaction;

use crate::audit::{self, Folded, RunEnd, Turns, fold};
use crate::session::clarification;
use crate::session::record::{self, Session, status};
use crate::session::turn::{self, TurnRow};
use crate::state::{self, Turn};
use crate::{DATABASE, task, time};

const SESSIONS: Cursor =
    Cursor { database: DATABASE, table: "reasoning_session", id: "id", column: "event_cursor" };

const INSERT_CONTEXT: &str = "INSERT INTO reasoning_context \
    (id, session_id, turn_id, input, created_at, updated_at) \
    VALUES ($1, $2, $3, $4, $5, $5) ON CONFLICT DO NOTHING";

const SELECT_CONTEXTS: &str =
    "SELECT id, turn_id FROM reasoning_context WHERE session_id = $1 ORDER BY created_at";

const SET_CONTEXT: &str =
    "UPDATE reasoning_context SET context_json = $1, updated_at = $2 WHERE id = $3";

/// A session, and its thread as it was before the log was read.
struct Synced<'a> {
    tenant: Option<&'a str>,
    session: Session,
    thread: Option<Thread>,
}

/// What new events change: rows of the audit trail, and the turn whose run ended.
struct Change {
    folded: Folded,
    turns: Turns,
    /// The thread after the end of a run.
    thread: Option<Thread>,
}

/// Applies new events to a session. Returns the session and its thread, if it has one.
pub(crate) fn sync(
    tenant: Option<&str>,
    session: Session,
) -> Result<(Session, Option<Thread>), Failure> {
    let thread = thread(&session.id)?;
    let mut synced = Synced { tenant, session, thread };
    SESSIONS.follow(&mut synced)?;
    Ok((synced.session, synced.thread))
}

impl Projection for Synced<'_> {
    type Change = Change;

    fn thread_id(&self) -> &str {
        &self.session.id
    }

    fn cursor(&self) -> u64 {
        self.session.event_cursor
    }

    fn fold(&self, events: Vec<Event>) -> Result<Option<(Change, u64)>, Failure> {
        let folded = fold(&events);
        let cursor = folded.cursor;
        if cursor <= self.cursor() {
            return Ok(None);
        }
        let by_run = contexts(&self.session.id)?;
        let newest = Some(turn::newest_turn(&self.session.id)?.id);
        let thread = match &folded.run_end {
            Some(_) => runs::thread(&self.session.id)?,
            None => None,
        };
        Ok(Some((Change { folded, turns: Turns { by_run, newest }, thread }, cursor)))
    }

    fn write(&self, transaction: &Transaction, change: Change) -> Result<(), Failure> {
        let (session_id, Change { folded, turns, thread }) = (&self.session.id, change);
        record::touch(transaction, session_id)?;
        audit::append(transaction, session_id, &folded.rows, &turns)?;
        if let (Some(run_end), Some(thread)) = (&folded.run_end, thread)
            && let Some(turn_id) = turns.by_run.get(&run_end.run).or(turns.newest.as_ref())
        {
            settle(transaction, session_id, turn_id, run_end, &thread)?;
        }
        Ok(())
    }

    /// The session can start a new thread.
    fn forget(&self, transaction: &Transaction) -> Result<(), Failure> {
        record::touch(transaction, &self.session.id)
    }

    fn reload(&mut self) -> Result<bool, Failure> {
        self.session = record::find(self.tenant, &self.session.id)?
            .ok_or_else(|| Failure::not_found("the session is gone"))?;
        self.thread = thread(&self.session.id)?;
        Ok(true)
    }
}

/// Returns the thread of a session, with its newest run recorded.
fn thread(session_id: &str) -> Result<Option<Thread>, Failure> {
    let thread = runs::thread(session_id)?;
    if let Some(thread) = &thread {
        adopt_newest(session_id, thread)?;
    }
    Ok(thread)
}

/// Records that a run belongs to a turn. Both may already be recorded.
pub(crate) fn adopt(session_id: &str, run_id: &str, turn: &TurnRow) -> Result<(), Failure> {
    let transaction = sql::database(DATABASE).begin()?;
    turn.insert(&transaction, session_id)?;
    let row = params![run_id, session_id, &turn.id, &turn.user_input, time::now()];
    if transaction.execute(INSERT_CONTEXT, row)?.rows_affected > 0 {
        turn::set_status(&transaction, &turn.id, status::RUNNING)?;
        record::set_status(&transaction, session_id, status::RUNNING)?;
    }
    transaction.commit()
}

/// Records a run whose request could not record it. The state of the thread has its turn.
fn adopt_newest(session_id: &str, thread: &Thread) -> Result<(), Failure> {
    let known = contexts(session_id)?;
    let Some(run_id) = thread.run_id.as_ref().filter(|run| !known.contains_key(*run)) else {
        return Ok(());
    };
    let Some(turn) = thread.channel::<Turn>("turn")? else { return Ok(()) };
    let input = thread.channel::<String>("query")?.unwrap_or_default();
    let turn = TurnRow::known(turn.turn_id, turn.turn_no, &input);
    adopt(session_id, run_id, &turn)
}

/// Returns the turn of each run.
fn contexts(session_id: &str) -> Result<BTreeMap<String, String>, Failure> {
    let rows = sql::database(DATABASE).query(SELECT_CONTEXTS, params![session_id])?;
    rows.iter().map(|row| Ok((row.get("id")?, row.get("turn_id")?))).collect()
}

/// Stores the end of a run: a result, a clarification, a cancel or an error.
fn settle(
    transaction: &Transaction,
    session_id: &str,
    turn_id: &str,
    run_end: &RunEnd,
    thread: &Thread,
) -> Result<(), Failure> {
    let asked = thread.channel::<state::Clarification>("clarification")?;
    let result = thread.channel::<Value>("model_output")?;
    let (status, result, error) = match (run_end.status.as_str(), asked, result) {
        ("completed", Some(asked), _) => {
            clarification::ask(transaction, session_id, turn_id, &asked)?;
            (status::WAITING, None, None)
        }
        ("completed", None, Some(result)) => (status::COMPLETED, Some(result), None),
        ("cancelled", ..) => (status::CANCELLED, None, None),
        _ => (status::FAILED, None, Some(error_of(run_end))),
    };
    task::abandon(transaction, session_id, turn_id)?;
    turn::settle(transaction, turn_id, status, result.as_ref(), error.as_ref())?;
    record::set_status(transaction, session_id, status)?;
    let plan = thread.state.get("plan_state").cloned().unwrap_or_default();
    let intent = thread.state.get("intent").cloned().unwrap_or_default();
    let context = json!({ "intent": intent, "plan_state": plan }).to_string();
    transaction.execute(SET_CONTEXT, params![context, time::now(), &run_end.run]).map(|_| ())
}

/// Returns the code and the message of a failed run. A reason from the app takes precedence over
/// the host's message, which also names nodes and plugins.
fn error_of(run_end: &RunEnd) -> Value {
    let Some(failure) = &run_end.failure else {
        return json!({ "code": Value::Null, "message": "the run ended without a result" });
    };
    let reason = failure.details.as_ref().and_then(|details| details.get("reason")?.as_str());
    json!({ "code": failure.code, "message": reason.unwrap_or(&failure.message) })
}
