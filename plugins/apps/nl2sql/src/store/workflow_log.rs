//! `workflow_log`: the outcome of each question, one row per run. Errors are stored without secrets,
//! which services and databases repeat in their messages.

use wattle_plugin::prelude::{Failure, params};
use wattle_plugin::redact;
use wattle_plugin::sql::{Row, Transaction};

use crate::running_step::Step;
use crate::setting;
use crate::state::{ResultReturnResult, name};
use crate::store::database;

const INSERT: &str = "INSERT INTO workflow_log (run_id, session_id, tenant, admin_id, message,
    intent, final_status, reason_code, error_step, error_message, retry_count, row_count,
    executed_sql, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
    ON CONFLICT (run_id) DO NOTHING";

const FAILURE: &str = "SELECT error_step, error_message FROM workflow_log
    WHERE run_id = $1 AND final_status = 'error'";

/// Records an answered question, inside of a transaction.
pub(crate) fn add(
    transaction: &Transaction,
    step: &Step<'_>,
    message: &str,
    result: &ResultReturnResult,
) -> Result<(), Failure> {
    let validated = result.sql_validate_result.as_ref();
    let parameters = params![
        &step.context.run_id,
        &step.context.thread_id,
        &step.owner.tenant,
        step.owner.admin_id,
        message,
        name(result.intent)?,
        name(result.final_status)?,
        result.reason_code.map(name).transpose()?,
        None::<String>,
        validated.and_then(|it| it.error.as_deref()).map(redact::text),
        result.hidden_context_retry_count,
        validated.map_or(0, |it| i64::try_from(it.rows).unwrap_or(i64::MAX)),
        validated.map(|it| it.executed_sql.clone()).unwrap_or_default(),
        setting::now()?.iso(),
    ];
    transaction.execute(INSERT, parameters).map(|_| ())
}

/// Records a question that a failed step ended.
pub(crate) fn write_failure(step: &Step<'_>, failure: &Failure) -> Result<(), Failure> {
    let parameters = params![
        &step.context.run_id,
        &step.context.thread_id,
        &step.owner.tenant,
        step.owner.admin_id,
        "",
        None::<String>,
        "error",
        None::<String>,
        step.name,
        redact::text(&failure.message),
        0,
        0,
        "",
        setting::now()?.iso(),
    ];
    database().execute(INSERT, parameters).map(|_| ())
}

/// Returns the step that ended a run and the message of its failure. A step that the host cut off
/// has recorded none.
pub(crate) fn failure(run_id: &str) -> Result<Option<(String, String)>, Failure> {
    let rows = database().query(FAILURE, params![run_id])?;
    let read = |row: Row<'_>| Ok((row.get("error_step")?, row.get("error_message")?));
    rows.first().map(read).transpose()
}
