//! Synchronizes the tables with the runs, from the event log of the session's thread.
//!
//! A request that reads a session applies the new events first.

use std::collections::BTreeMap;

use wattle_plugin::prelude::{Failure, Value, json, params, runs, sql};
use wattle_plugin::projection::{Cursor, Projection};
use wattle_plugin::redact;
use wattle_plugin::runs::{Event, Thread};
use wattle_plugin::sql::Transaction;

use crate::audit::{self, Folded, RunEnd, Turns, fold};
use crate::session::clarification;
use crate::session::table::{self, Session, status};
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
    /// The thread after the end of a run. `None` if it has a later run, whose state is another one.
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
            Some(end) => runs::thread(&self.session.id)?
                .filter(|thread| thread.run_id.as_ref() == Some(&end.run)),
            None => None,
        };
        Ok(Some((Change { folded, turns: Turns { by_run, newest }, thread }, cursor)))
    }

    fn write(&self, transaction: &Transaction, change: Change) -> Result<(), Failure> {
        let (session_id, Change { folded, turns, thread }) = (&self.session.id, change);
        table::touch(transaction, session_id)?;
        audit::append(transaction, session_id, &folded.rows, &turns)?;
        let Some(run_end) = &folded.run_end else { return Ok(()) };
        let newest = turns.newest.as_ref();
        match (thread, turns.by_run.get(&run_end.run).or(newest)) {
            (Some(thread), Some(turn_id)) => {
                settle(transaction, session_id, turn_id, run_end, &thread)
            }
            // The later run settles the newest turn.
            (None, Some(turn_id)) if newest != Some(turn_id) => {
                settle_replaced(transaction, session_id, turn_id, run_end)
            }
            _ => Ok(()),
        }
    }

    /// Fails the turn that was running. Another run of it gets a new thread.
    fn forget(&self, transaction: &Transaction) -> Result<(), Failure> {
        let session_id = &self.session.id;
        for turn_id in turn::forget(transaction, session_id)? {
            task::abandon(transaction, session_id, &turn_id)?;
        }
        table::forget(transaction, session_id)
    }

    fn reload(&mut self) -> Result<bool, Failure> {
        self.session = table::find(self.tenant, &self.session.id)?
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
        table::set_status(&transaction, session_id, status::RUNNING)?;
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
///
/// # Errors
///
/// `limit` if the host truncates the result: a run without its turn would count for the newest one.
fn contexts(session_id: &str) -> Result<BTreeMap<String, String>, Failure> {
    let rows = sql::database(DATABASE).query(SELECT_CONTEXTS, params![session_id])?.whole()?;
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
    table::set_status(transaction, session_id, status)?;
    let plan = thread.state.get("plan_state").cloned().unwrap_or_default();
    let intent = thread.state.get("intent").cloned().unwrap_or_default();
    let context = json!({ "intent": intent, "plan_state": plan }).to_string();
    transaction.execute(SET_CONTEXT, params![context, time::now(), &run_end.run]).map(|_| ())
}

/// Stores the end of a run whose result a later run has replaced.
fn settle_replaced(
    transaction: &Transaction,
    session_id: &str,
    turn_id: &str,
    run_end: &RunEnd,
) -> Result<(), Failure> {
    let (status, error) = match run_end.status.as_str() {
        "cancelled" => (status::CANCELLED, None),
        _ => (status::FAILED, Some(error_of(run_end))),
    };
    task::abandon(transaction, session_id, turn_id)?;
    turn::settle(transaction, turn_id, status, None, error.as_ref())
}

/// Returns the code and the message of a failed run. A reason from the app takes precedence over
/// the host's message, which also names nodes and plugins. The message has no secrets, which services
/// repeat in theirs.
fn error_of(run_end: &RunEnd) -> Value {
    let Some(failure) = &run_end.failure else {
        return json!({ "code": Value::Null, "message": "the run ended without a result" });
    };
    let reason = failure.details.as_ref().and_then(|details| details.get("reason")?.as_str());
    let message = redact::text(reason.unwrap_or(&failure.message));
    json!({ "code": failure.code, "message": message })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use wattle_plugin::prelude::{Failure, json, params, sql};
    use wattle_plugin::runs::Thread;
    use wattle_plugin::testing::{FakeHost, SqlAnswer};

    use super::{RunEnd, Session, contexts, error_of, status, sync};

    const COLUMNS: [&str; 6] =
        ["id", "status", "metadata", "event_cursor", "created_at", "updated_at"];

    fn running(event_cursor: u64) -> Session {
        Session {
            id: "s".to_owned(),
            status: status::RUNNING.to_owned(),
            metadata: json!({}),
            event_cursor,
            created_at: String::new(),
            updated_at: String::new(),
        }
    }

    #[test]
    fn each_end_of_a_run_settles_its_turn() {
        let mut thread = Thread::new("s", "reasoning", "idle", json!({ "model_output": {} }));
        thread.run_id = Some("r2".to_owned());
        let ended = |seq: u64, run: &str, status: &str| {
            let kind = "run_ended";
            json!({"seq": seq, "at_ms": 1, "run": run, "type": kind, "status": status})
        };
        let cursor = Cell::new(0);
        let host = FakeHost::new()
            .thread(thread)
            .event("s", ended(1, "r1", "cancelled"))
            .event("s", ended(2, "r2", "completed"))
            .sql(move |statement| {
                let text = statement.text.as_str();
                let rows = if text.contains("FROM reasoning_session") {
                    let session = params!["s", "running", "{}", cursor.get(), "t", "t"];
                    sql::Rows::new(COLUMNS, vec![session])
                } else if text.contains("FROM reasoning_context") {
                    let runs = vec![params!["r1", "t1"], params!["r2", "t2"]];
                    sql::Rows::new(["id", "turn_id"], runs)
                } else if text.contains("FROM reasoning_turn") {
                    let turn = params!["t2", 2, "running", "q", None::<&str>, None::<&str>];
                    let columns = ["id", "turn_no", "status", "user_input", "result", "error"];
                    sql::Rows::new(columns, vec![turn])
                } else if text.contains("RETURNING trace_count") {
                    sql::Rows::new(["trace_count"], vec![params![1]])
                } else {
                    if text.contains("SET event_cursor")
                        && let Some(sql::Value::Integer(to)) = statement.parameters.first()
                    {
                        cursor.set(*to);
                    }
                    return Ok(SqlAnswer::affected(1));
                };
                Ok(rows.into())
            });
        host.run(|| sync(None, running(0))).unwrap();
        let statements = host.statements();
        let settled: Vec<_> = statements
            .iter()
            .filter(|it| it.text.starts_with("UPDATE reasoning_turn SET status = $1, result_json"))
            .map(|it| (it.parameters[0].clone(), it.parameters[4].clone()))
            .collect();
        let expected: [(sql::Value, sql::Value); 2] =
            [("cancelled".into(), "t1".into()), ("completed".into(), "t2".into())];
        assert_eq!(settled, expected);
    }

    #[test]
    fn running_turn_without_its_thread_has_failed() {
        let host = FakeHost::new().sql(|statement| {
            if statement.text.starts_with("SELECT") {
                let session = params!["s", "failed", "{}", 0, "t", "t"];
                return Ok(sql::Rows::new(COLUMNS, vec![session]).into());
            }
            if statement.text.contains("RETURNING id") {
                return Ok(sql::Rows::new(["id"], vec![params!["turn"]]).into());
            }
            Ok(SqlAnswer::affected(1))
        });
        let (session, thread) = host.run(|| sync(None, running(7))).unwrap();
        assert_eq!((session.status.as_str(), session.event_cursor), (status::FAILED, 0));
        assert!(thread.is_none());
        let written: Vec<String> =
            host.statements().into_iter().map(|statement| statement.text).collect();
        for table in ["reasoning_turn", "reasoning_task", "reasoning_session"] {
            let fails = format!("UPDATE {table} SET ");
            let is_failed = |text: &String| text.starts_with(&fails) && text.contains("'failed'");
            assert!(written.iter().any(is_failed), "{table}: {written:?}");
        }
    }

    #[test]
    fn errors_of_turns_have_no_secrets() {
        let refused = "Incorrect API key: sk-abc123456";
        let of_app = Failure::internal("a node failed").with_details(json!({ "reason": refused }));
        for failure in [Failure::unavailable(refused), of_app] {
            let (run, status) = ("r".to_owned(), "failed".to_owned());
            let error = error_of(&RunEnd { run, status, failure: Some(failure) });
            assert_eq!(error["message"], "Incorrect API key: [redacted]");
        }
    }

    #[test]
    fn some_of_the_runs_are_not_all() {
        let host = FakeHost::new().sql(|_| {
            let rows = sql::Rows::new(["id", "turn_id"], vec![params!["r", "t"]]);
            Ok(sql::Rows { truncated: true, ..rows }.into())
        });
        assert_eq!(host.run(|| contexts("s")).unwrap_err().code, "limit");
    }
}
