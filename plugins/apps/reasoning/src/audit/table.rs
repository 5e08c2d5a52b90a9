//! The table of rows, numbered in each session from 1 without gaps.

use std::collections::BTreeMap;

use wattle_plugin::prelude::{
    Deserialize, Extra, Failure, JsonSchema, Serialize, Value, clock, json, params, sql,
};
use wattle_plugin::redact;
use wattle_plugin::sql::Transaction;

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
    seq: i64,
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

/// Consecutive rows.
pub(crate) struct TracePage {
    pub(crate) events: Vec<TraceEvent>,
    /// Number of the last row if further ones may follow.
    pub(crate) next_after: Option<i64>,
}

/// Returns up to `limit` rows with numbers greater than `after`, in ascending order, of which all
/// but the first fit into `room` bytes of JSON.
pub(crate) fn list(
    session_id: &str,
    after: i64,
    limit: i64,
    mut room: usize,
) -> Result<TracePage, Failure> {
    let rows = sql::database(DATABASE).query(SELECT, params![session_id, after, limit])?;
    // A page without a row has no number at which the next one begins.
    let rows = if rows.is_empty() { rows.whole()? } else { rows };
    let mut has_more = rows.truncated || i64::try_from(rows.len()) == Ok(limit);
    let mut events: Vec<TraceEvent> = Vec::new();
    for row in rows.iter() {
        let event: TraceEvent = row.read()?;
        // Includes the comma after the event.
        let bytes = json!(event).to_string().len() + 1;
        if bytes > room && !events.is_empty() {
            has_more = true;
            break;
        }
        room = room.saturating_sub(bytes);
        events.push(event);
    }
    let next_after = events.last().filter(|_| has_more).map(|last| last.seq);
    Ok(TracePage { events, next_after })
}
