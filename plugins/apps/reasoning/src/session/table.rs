//! The table of sessions, and the status of sessions and turns.

use wattle_plugin::prelude::{Deserialize, Failure, JsonSchema, Value, params, sql};

use crate::{DATABASE, time};

const SELECT: &str = "SELECT id, status, metadata_json AS metadata, event_cursor, created_at, \
    updated_at FROM reasoning_session WHERE id = $1 AND tenant = $2";

const SET_STATUS: &str = "UPDATE reasoning_session SET status = $1, updated_at = $2 WHERE id = $3";

const TOUCH: &str = "UPDATE reasoning_session SET updated_at = $1 WHERE id = $2";

const FORGET: &str = "UPDATE reasoning_session SET updated_at = $1, \
    status = CASE WHEN status = 'running' THEN 'failed' ELSE status END WHERE id = $2";

/// Tenant of requests that name none.
pub(super) const DEFAULT_TENANT: &str = "default";

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

/// A session, as its row.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) status: String,
    #[serde(deserialize_with = "sql::json")]
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

/// Returns the session with this id, if it belongs to the tenant.
pub(crate) fn find(tenant: Option<&str>, session_id: &str) -> Result<Option<Session>, Failure> {
    let tenant = tenant.unwrap_or(DEFAULT_TENANT);
    sql::database(DATABASE).query(SELECT, params![session_id, tenant])?.read_first()
}

/// Sets the status of a session.
pub(crate) fn set_status(
    transaction: &sql::Transaction,
    session_id: &str,
    status: &str,
) -> Result<(), Failure> {
    transaction.execute(SET_STATUS, params![status, time::now(), session_id]).map(|_| ())
}

/// Fails a session that is still running although its thread was deleted.
pub(super) fn forget(transaction: &sql::Transaction, session_id: &str) -> Result<(), Failure> {
    transaction.execute(FORGET, params![time::now(), session_id]).map(|_| ())
}

/// Sets the time of the last change of a session.
pub(super) fn touch(transaction: &sql::Transaction, session_id: &str) -> Result<(), Failure> {
    transaction.execute(TOUCH, params![time::now(), session_id]).map(|_| ())
}
