//! Sessions, turns and clarifications in the database.
//!
//! A session is a thread of the host with the same id. A turn is one message of the user, with its
//! result; it takes one or several runs. [`sync()`] reads what a run did from the thread's event
//! log before the tables are read, so the tables are correct also after a crash.

mod clarification;
mod sync;
mod turn;

use wattle_plugin::prelude::{Failure, JsonSchema, Value, clock, json, params, random, sql};

use self::clarification::cancel_pending;
pub(crate) use self::clarification::{
    Clarification, ClarificationView, PendingClarification, answer, asked, pending,
};
pub(crate) use self::sync::{adopt, sync};
pub(crate) use self::turn::{TurnRow, TurnView, WholeTurn, newest_turn, next_turn_no, turns};
use crate::audit::{self, Row, Turns};
use crate::{DATABASE, time};

const INSERT: &str = "INSERT INTO reasoning_session \
    (id, tenant, status, metadata_json, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $5)";

const SELECT: &str = "SELECT id, status, metadata_json, event_cursor, created_at, updated_at \
    FROM reasoning_session WHERE id = $1 AND tenant = $2";

const SET_STATUS: &str = "UPDATE reasoning_session SET status = $1, updated_at = $2 WHERE id = $3";

/// Tenant of requests that name none.
const DEFAULT_TENANT: &str = "default";

/// Status of a session or a turn.
pub(crate) mod status {
    pub(crate) const CREATED: &str = "created";
    pub(crate) const RUNNING: &str = "running";
    pub(crate) const WAITING: &str = "waiting_clarification";
    pub(crate) const COMPLETED: &str = "completed";
    pub(crate) const FAILED: &str = "failed";
    pub(crate) const CANCELLED: &str = "cancelled";
}

/// Status of a session or a turn.
#[expect(dead_code, reason = "only its schema is used: the tables have texts")]
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    Created,
    Running,
    WaitingClarification,
    Completed,
    Failed,
    Cancelled,
}

/// A session.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) status: String,
    pub(crate) metadata: Value,
    /// Sequence number of the last event that was applied to the tables.
    pub(crate) event_cursor: u64,
    pub(crate) created_at: String,
    pub(crate) updated_at: String,
}

impl Session {
    /// Returns the ontologies that the caller prefers, from the metadata of the session.
    pub(crate) fn preferred(&self) -> Vec<String> {
        let codes = self.metadata.get("preferred_ontology_codes").and_then(Value::as_array);
        codes.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }
}

/// Creates a session with its first turn.
pub(crate) fn create(
    tenant: Option<&str>,
    user_input: &str,
    metadata: &Value,
) -> Result<(String, TurnRow), Failure> {
    let (session_id, now) = (random::uuid(), time::now()?);
    let turn = TurnRow::fresh(1, user_input);
    let transaction = sql::database(DATABASE).begin()?;
    let tenant = tenant.unwrap_or(DEFAULT_TENANT);
    let row = params![&session_id, tenant, status::CREATED, metadata.to_string(), &now];
    transaction.execute(INSERT, row)?;
    turn.insert(&transaction, &session_id)?;
    let payload = json!({ "user_input": user_input, "turn_no": 1 });
    let created = Row::of_endpoint("session_create", "session_created", payload, clock::now_ms());
    let turns = Turns { newest: Some(turn.id.clone()), ..Turns::default() };
    audit::append(&transaction, &session_id, &[created], &turns)?;
    transaction.commit()?;
    Ok((session_id, turn))
}

/// Returns the session with this id, if it belongs to the tenant.
pub(crate) fn find(tenant: Option<&str>, session_id: &str) -> Result<Option<Session>, Failure> {
    let tenant = tenant.unwrap_or(DEFAULT_TENANT);
    let rows = sql::database(DATABASE).query(SELECT, params![session_id, tenant])?;
    let Some(row) = rows.first() else { return Ok(None) };
    Ok(Some(Session {
        id: row.get("id")?,
        status: row.get("status")?,
        metadata: row.get("metadata_json")?,
        event_cursor: row.get("event_cursor")?,
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
    }))
}

/// Sets the status of a session.
pub(crate) fn set_status(
    transaction: &sql::Transaction,
    session_id: &str,
    status: &str,
) -> Result<(), Failure> {
    transaction.execute(SET_STATUS, params![status, time::now()?, session_id]).map(|_| ())
}

/// Cancels a session without an active run, together with its newest turn and its pending
/// clarification.
pub(crate) fn cancel(session: &Session, turn: &TurnRow) -> Result<(), Failure> {
    let transaction = sql::database(DATABASE).begin()?;
    set_status(&transaction, &session.id, status::CANCELLED)?;
    if matches!(turn.status.as_str(), status::CREATED | status::WAITING | status::RUNNING) {
        turn::set_status(&transaction, &turn.id, status::CANCELLED)?;
    }
    cancel_pending(&transaction, &session.id)?;
    let row = Row::of_endpoint("failed", "session_cancelled", json!({}), clock::now_ms());
    let turns = Turns { newest: Some(turn.id.clone()), ..Turns::default() };
    audit::append(&transaction, &session.id, &[row], &turns)?;
    transaction.commit()
}
