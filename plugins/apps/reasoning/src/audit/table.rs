//! The table of rows, numbered in each session from 1 without gaps.

use std::collections::BTreeMap;

use wattle_plugin::prelude::{
    Deserialize, Extra, Failure, JsonSchema, Serialize, Value, clock, params, sql,
};
use wattle_plugin::redact;
use wattle_plugin::sql::{Page, Transaction};
use wattle_plugin::web::PAGE_BYTES;

use crate::DATABASE;
use crate::audit::Row;

const COUNT: &str = "UPDATE reasoning_session SET trace_count = trace_count + $1 WHERE id = $2 \
    RETURNING trace_count";

const INSERT: &str = "INSERT INTO reasoning_trace_event \
    (session_id, seq, turn_id, step, event_type, payload_json, created_at) \
    VALUES ($1, $2, $3, $4, $5, $6, $7)";

const SELECT: &str = "SELECT id, seq, turn_id, step, event_type, payload_json AS payload, \
    created_at FROM reasoning_trace_event \
    WHERE session_id = $1 AND seq > $2 ORDER BY seq LIMIT $3";

/// Turn of each run, and turn of the rows without a run.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    pub(crate) by_run: BTreeMap<String, String>,
    pub(crate) newest: Option<String>,
}

/// Appends rows with secrets redacted. Nothing else writes to the table. The transaction also
/// increments the row count of the session, so concurrent appends wait for each other and the
/// numbers have no gaps.
pub(crate) fn append(
    transaction: &Transaction,
    session_id: &str,
    rows: &[Row],
    turns: &Turns,
) -> Result<(), Failure> {
    let added = i64::try_from(rows.len()).unwrap_or(i64::MAX);
    let counted = transaction.execute(COUNT, params![added, session_id])?;
    let count: i64 = counted.returned.one()?.get("trace_count")?;
    let first = count - added + 1;
    for (row, seq) in rows.iter().zip(first..) {
        let by_run = row.run.as_ref().and_then(|run| turns.by_run.get(run));
        let turn = by_run.or(turns.newest.as_ref());
        let payload = redact::value(row.payload.clone()).to_string();
        let at = clock::utc(row.at_ms);
        let values = params![session_id, seq, turn, row.step, &row.event_type, payload, at];
        transaction.execute(INSERT, values)?;
    }
    Ok(())
}

/// A row as the endpoint returns it. Rows never change.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub(crate) struct TraceEvent {
    id: i64,
    pub(crate) seq: i64,
    turn_id: Option<String>,
    step: String,
    event_type: String,
    #[serde(deserialize_with = "sql::json")]
    #[schemars(with = "TracePayload")]
    payload: Value,
    created_at: String,
}

/// The payload of a row. Both rows of a call have its id.
#[expect(dead_code, reason = "only its schema is used: each row has its own document")]
#[derive(JsonSchema)]
struct TracePayload {
    #[serde(skip_serializing_if = "Option::is_none")]
    call_id: Option<String>,
    /// Name of a tool call.
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    /// Purpose of a model call.
    #[serde(skip_serializing_if = "Option::is_none")]
    purpose: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<TraceError>,
    #[serde(flatten)]
    more: Extra,
}

/// The failure of a call or a run.
#[expect(dead_code, reason = "only its schema is used: each row has its own document")]
#[derive(JsonSchema)]
struct TraceError {
    code: Option<String>,
    message: Option<String>,
}

/// Returns up to `limit` rows with numbers greater than `after`, in ascending order, that fit into
/// a response.
pub(crate) fn list(session_id: &str, after: i64, limit: u32) -> Result<Page<TraceEvent>, Failure> {
    let parameters = params![session_id, after, i64::from(limit) + 1];
    sql::database(DATABASE).query(SELECT, parameters)?.page(limit, PAGE_BYTES)
}
