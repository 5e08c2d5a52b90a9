//! The payload of a webhook: the run at its end.

use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_graph::json_text;
use wattle_project::agent_server::failure::message_of;
use wattle_project::agent_server::time::format_time_with_micros;
use wattle_run::engine::Engine;
use wattle_run::hostcall::runs::{RunOutcome, RunRef, RunService as _};

use super::Webhooks;
use crate::error::ApiError;
use crate::records::webhook::{Payload, WebhookRecord};
use crate::run::{StartOutcome, StoredRun, wait_for_start};
use crate::view;
use crate::wire::response::run_values;

/// Maximum size in bytes of the values in a payload. A client reads larger values through the API.
const MAX_VALUES_BYTES: u64 = 4 << 20;

/// The end of a run.
struct RunEnd {
    values: Value,
    failure: Option<Failure>,
}

/// Waits until a run has ended. Returns the payload, or `None` if the run was deleted.
///
/// # Errors
///
/// The errors of the store, and `unavailable` while the host shuts down. A retry can succeed.
pub(super) async fn wait_for_payload(
    webhooks: &Webhooks,
    webhook: &WebhookRecord,
) -> Result<Option<Payload>, ApiError> {
    let (engine, stopping) = (webhooks.engine(), webhooks.stopping());
    let run = RunRef { thread: webhook.delivery.thread.clone(), run: webhook.delivery.run.clone() };
    let end = match wait_for_start(engine, stopping, &run).await? {
        StartOutcome::Started(_) => wait_for_end(engine, &run).await?,
        StartOutcome::Failed(failure) => {
            Some(RunEnd { values: Value::Null, failure: Some(failure) })
        }
        StartOutcome::Removed => Some(RunEnd { values: Value::Null, failure: None }),
        StartOutcome::ShuttingDown => {
            return Err(Failure::new(code::UNAVAILABLE, "the host is shutting down").into());
        }
    };
    let (Some(end), Some(known)) = (end, find_run(engine, &run).await?) else { return Ok(None) };
    Ok(Some(build_payload(engine, &known, end)))
}

/// Finds the run. Returns `None` if the run was deleted.
async fn find_run(engine: &Engine, run: &RunRef) -> Result<Option<StoredRun>, ApiError> {
    let Some(head) = engine.ports().store.thread(&run.thread).await? else { return Ok(None) };
    match StoredRun::find(engine, &head.record, run.run.as_str()).await {
        Err(error) if error.status() == StatusCode::NOT_FOUND => Ok(None),
        known => known.map(Some),
    }
}

async fn wait_for_end(engine: &Engine, run: &RunRef) -> Result<Option<RunEnd>, ApiError> {
    let ended = match engine.wait(run).await {
        Ok(ended) => ended,
        Err(failure) if failure.code == code::NOT_FOUND => return Ok(None),
        Err(failure) => return Err(failure.into()),
    };
    let head = engine.ports().store.thread(&run.thread).await?;
    let Some(head) = head else { return Ok(None) };
    engine.load_code(&head.record).await;
    let thread_info = view::thread_info(engine, &head.record);
    Ok(Some(match &ended.outcome {
        RunOutcome::Failed { failure } => {
            RunEnd { values: thread_info.values(&ended.state), failure: Some(failure.clone()) }
        }
        _ => RunEnd { values: run_values(&thread_info, &ended), failure: None },
    }))
}

fn build_payload(engine: &Engine, known: &StoredRun, end: RunEnd) -> Payload {
    let started_ms = known.record.started_ms;
    let ended_ms = known.record.ended_ms.unwrap_or_else(|| engine.ports().clock.now_ms());
    let mut fields: Map<String, Value> = match json!(known.to_body()) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    fields.insert("run_started_at".to_owned(), format_time_with_micros(started_ms).into());
    fields.insert("run_ended_at".to_owned(), format_time_with_micros(ended_ms).into());
    let fits = json_text::has_at_most(&end.values, MAX_VALUES_BYTES);
    fields.insert("values".to_owned(), if fits { end.values } else { Value::Null });
    if let Some(failure) = end.failure {
        fields.insert("error".to_owned(), message_of(&failure).into());
    }
    Payload(fields)
}
