//! Synchronizes the tables with the runs, from the event log of the session's thread.
//!
//! A request that reads a session applies the new events first. The same transaction moves the
//! cursor of the session, and only from the position that was read. Of several concurrent requests,
//! therefore, one applies the events.

use std::collections::BTreeMap;

use wattle_plugin::prelude::{Failure, Value, json, params, runs, sql};
use wattle_plugin::runs::Thread;
use wattle_plugin::sql::Transaction;

use crate::audit::{self, Folded, RunEnd, Turns, fold};
use crate::session::clarification;
use crate::session::record::{self, Session, status};
use crate::session::turn::{self, TurnRow};
use crate::state::{self, Turn};
use crate::{DATABASE, task, time};

/// Number of events per read: as many as the host returns at once.
const PAGE: u32 = runs::PAGE_EVENTS;

/// Maximum attempts to apply new events. A concurrent request can be faster each time; the session
/// is then recent enough.
const ATTEMPTS: u32 = 5;

const MOVE_CURSOR: &str = "UPDATE reasoning_session SET event_cursor = $1, updated_at = $2 \
    WHERE id = $3 AND event_cursor = $4";

const FORGET: &str = "UPDATE reasoning_session SET event_cursor = 0, updated_at = $1 WHERE id = $2";

const INSERT_CONTEXT: &str = "INSERT INTO reasoning_context \
    (id, session_id, turn_id, input, created_at, updated_at) \
    VALUES ($1, $2, $3, $4, $5, $5) ON CONFLICT DO NOTHING";

const SELECT_CONTEXTS: &str =
    "SELECT id, turn_id FROM reasoning_context WHERE session_id = $1 ORDER BY created_at";

const SET_CONTEXT: &str =
    "UPDATE reasoning_context SET context_json = $1, updated_at = $2 WHERE id = $3";

/// Applies new events to a session. Returns the session and its thread, if it has one.
pub(crate) fn sync(
    tenant: Option<&str>,
    mut session: Session,
) -> Result<(Session, Option<Thread>), Failure> {
    for _ in 0..ATTEMPTS {
        let Some(thread) = runs::thread(&session.id)? else {
            return Ok((forget(session)?, None));
        };
        let known = contexts(&session.id)?;
        adopt_newest(&session, &thread, &known)?;
        let folded = fold(&events(&session)?)?;
        if folded.cursor <= session.event_cursor {
            return Ok((session, Some(thread)));
        }
        let is_applied = apply(&session, &folded)?;
        session = record::find(tenant, &session.id)?
            .ok_or_else(|| Failure::not_found("the session is gone"))?;
        if is_applied && folded.run_end.is_some() {
            let thread = runs::thread(&session.id)?;
            return Ok((session, thread));
        }
    }
    let thread = runs::thread(&session.id)?;
    Ok((session, thread))
}

/// Resets the cursor of a session whose thread an operator deleted. The session can start a new
/// thread, whose events count from 1.
fn forget(session: Session) -> Result<Session, Failure> {
    if session.event_cursor == 0 {
        return Ok(session);
    }
    let transaction = sql::database(DATABASE).begin()?;
    transaction.execute(FORGET, params![time::now(), &session.id])?;
    transaction.commit()?;
    Ok(Session { event_cursor: 0, ..session })
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
fn adopt_newest(
    session: &Session,
    thread: &Thread,
    known: &BTreeMap<String, String>,
) -> Result<(), Failure> {
    let Some(run_id) = thread.run_id.as_ref().filter(|run| !known.contains_key(*run)) else {
        return Ok(());
    };
    let Some(turn) = thread.channel::<Turn>("turn")? else { return Ok(()) };
    let input = thread.channel::<String>("query")?.unwrap_or_default();
    let turn = TurnRow::known(turn.turn_id, turn.turn_no, &input);
    adopt(&session.id, run_id, &turn)
}

/// Returns the turn of each run.
fn contexts(session_id: &str) -> Result<BTreeMap<String, String>, Failure> {
    let rows = sql::database(DATABASE).query(SELECT_CONTEXTS, params![session_id])?;
    rows.iter().map(|row| Ok((row.get("id")?, row.get("turn_id")?))).collect()
}

/// Returns all events after the cursor.
fn events(session: &Session) -> Result<Vec<Value>, Failure> {
    let mut events: Vec<Value> = Vec::new();
    loop {
        let after = session.event_cursor + events.len() as u64;
        let page = runs::events(&session.id, after, PAGE)?;
        if page.is_empty() {
            return Ok(events);
        }
        events.extend(page);
    }
}

/// Writes the folded rows. Returns false if a concurrent request was faster.
fn apply(session: &Session, folded: &Folded) -> Result<bool, Failure> {
    let by_run = contexts(&session.id)?;
    let newest = Some(turn::newest_turn(&session.id)?.id);
    let turns = Turns { by_run, newest };
    // The thread is read before the transaction, which blocks other writers.
    let thread = match &folded.run_end {
        Some(_) => runs::thread(&session.id)?,
        None => None,
    };
    let transaction = sql::database(DATABASE).begin()?;
    let cursor = params![
        folded.cursor.cast_signed(),
        time::now(),
        &session.id,
        session.event_cursor.cast_signed(),
    ];
    if transaction.execute(MOVE_CURSOR, cursor)?.rows_affected == 0 {
        transaction.rollback()?;
        return Ok(false);
    }
    audit::append(&transaction, &session.id, &folded.rows, &turns)?;
    if let (Some(run_end), Some(thread)) = (&folded.run_end, thread)
        && let Some(turn_id) = turns.by_run.get(&run_end.run).or(turns.newest.as_ref())
    {
        settle(&transaction, &session.id, turn_id, run_end, &thread)?;
    }
    transaction.commit()?;
    Ok(true)
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
