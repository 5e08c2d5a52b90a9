//! The table of steps.

use wattle_plugin::prelude::{Deserialize, Failure, JsonSchema, Serialize, Value, params, sql};
use wattle_plugin::sql::{Newest, Transaction};

use crate::DATABASE;
use crate::session::step::{Step, StepStatus};
use crate::session::{Session, plain, stored_output, utc, utc_or_none};

const PUT: &str = "INSERT INTO session_steps (id, session_id, tenant, run_id, tool_name, \
    tool_call_id, status, input, output, error_message, duration_ms, seq, started_ms, \
    completed_ms) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) \
    ON CONFLICT (session_id, id) DO UPDATE SET status = excluded.status, \
    output = excluded.output, error_message = excluded.error_message, \
    duration_ms = excluded.duration_ms, completed_ms = excluded.completed_ms";

const SELECT: &str = "SELECT id, run_id, tool_name, tool_call_id, status, input, output, \
    error_message, duration_ms, started_ms AS started_at, completed_ms AS completed_at \
    FROM session_steps WHERE session_id = $1 ORDER BY seq DESC";

/// A step as the endpoints show it.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all(serialize = "camelCase"))]
pub(crate) struct StepView {
    id: String,
    run_id: String,
    tool_name: String,
    /// Id that the model gave the call.
    tool_call_id: Option<String>,
    #[schemars(with = "StepStatus")]
    status: String,
    /// Arguments of the call.
    #[serde(deserialize_with = "sql::json")]
    input: Option<Value>,
    /// Output of the tool, in which long texts are shortened.
    #[serde(deserialize_with = "sql::json")]
    output: Option<Value>,
    error_message: Option<String>,
    duration_ms: Option<i64>,
    #[serde(deserialize_with = "utc")]
    started_at: String,
    #[serde(deserialize_with = "utc_or_none")]
    completed_at: Option<String>,
}

/// Writes a new step, or the progress of a stored one.
pub(super) fn put(
    transaction: &Transaction,
    session: &Session,
    run: &str,
    step: &Step,
) -> Result<(), Failure> {
    let row = params![
        &step.id,
        &session.id,
        &session.tenant,
        run,
        &step.tool,
        step.call_id.as_deref().map(plain),
        step.status.name(),
        step.input.as_ref().map(Value::to_string),
        step.output.as_ref().map(|output| stored_output::of_step(output).to_string()),
        step.error.as_deref().map(plain),
        step.duration_ms,
        step.seq.cast_signed(),
        step.started_ms,
        step.ended_ms,
    ];
    transaction.execute(PUT, row).map(|_| ())
}

/// Returns the newest steps of a session as the endpoints show them, in order.
pub(crate) fn list(session_id: &str, budget: &mut usize) -> Result<Newest, Failure> {
    sql::database(DATABASE).query(SELECT, params![session_id])?.newest::<StepView>(budget)
}
