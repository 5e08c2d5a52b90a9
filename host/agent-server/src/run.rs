//! A run with its request and its record, and the result of a run.

use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::RunId;
use wattle_project::agent_server::document::ERROR;
use wattle_project::agent_server::failure::error_of;
use wattle_project::agent_server::id::assistant_uuid;
use wattle_run::engine::Engine;
use wattle_run::hostcall::runs::{EndedRun, Multitask, RunOutcome, RunRef, RunService as _};
use wattle_run::ports::store::{RunRecord, ThreadRecord};

use crate::error::ApiError;
use crate::graphs;
use crate::records::{legacy, webhook};
use crate::resolve::run::{ClientFields, RequestedRun};
use crate::view;
use crate::wire::response::{Run, RunStatus, run_values};

/// A run of a thread, with its request and its record.
#[derive(Clone)]
pub(crate) struct StoredRun {
    /// The run as the client requested it.
    pub(crate) requested: RequestedRun,
    /// The record of the engine.
    pub(crate) record: RunRecord,
}

impl StoredRun {
    /// Finds a run of a thread by its id.
    ///
    /// # Errors
    ///
    /// 404 if the thread has no such run.
    pub(crate) async fn find(
        engine: &Engine,
        thread: &ThreadRecord,
        id: &str,
    ) -> Result<Self, ApiError> {
        let run = RunId::new(id).map_err(|error| ApiError::unprocessable(error.to_string()))?;
        let record = engine.ports().store.run(&run).await?;
        let Some(record) = record.filter(|record| record.thread == thread.id) else {
            crate::extractors::parse_uuid("run", id)?;
            return Err(ApiError::missing("run", id));
        };
        Self::load(engine, thread, record).await
    }

    /// Returns the run of a record, with its request.
    pub(crate) async fn load(
        engine: &Engine,
        thread: &ThreadRecord,
        record: RunRecord,
    ) -> Result<Self, ApiError> {
        let requested = match RequestedRun::from_record(&record, thread) {
            // Hosts of older versions stored the request in the long-term memory.
            None if record.created_ms.is_none() => {
                let (ports, tenant) = (engine.ports(), thread.tenant.as_ref());
                legacy::find_run(ports, tenant, &thread.id, &record.id).await?
            }
            requested => requested,
        };
        let mut requested = requested.unwrap_or_else(|| from_other_api(engine, thread, &record));
        if requested.client.kwargs.get("webhook").is_some_and(Value::is_string) {
            let error = webhook::delivery_error(engine.ports(), &record.id).await?;
            requested
                .client
                .kwargs
                .extend(error.map(|why| (webhook::WEBHOOK_ERROR.to_owned(), why.into())));
        }
        Ok(Self { requested, record })
    }

    /// Describes the run for clients, as JSON.
    pub(crate) fn to_body(&self) -> Run {
        self.requested.to_body(&self.record)
    }

    /// Returns whether the run has ended.
    pub(crate) fn has_ended(&self) -> bool {
        RunStatus::from_record(&self.record).has_ended()
    }
}

/// Describes a run that another API created as if a client of this API had requested it.
fn from_other_api(engine: &Engine, thread: &ThreadRecord, record: &RunRecord) -> RequestedRun {
    let graph_id = graphs::graph_id(engine.catalog(), &thread.app, &thread.graph);
    RequestedRun {
        run: record.id.clone(),
        thread: record.thread.clone(),
        tenant: thread.tenant.clone(),
        app: thread.app.clone(),
        graph: thread.graph.clone(),
        created_ms: record.created_ms(),
        due_ms: record.due_ms(),
        client: ClientFields {
            assistant: assistant_uuid(&graph_id).to_string(),
            assistant_version: 1,
            graph_id,
            kwargs: Map::new(),
            metadata: Map::new(),
            strategy: Multitask::default(),
        },
    }
}

/// The result of waiting for the start of a run.
pub(crate) enum StartOutcome {
    /// The run has started.
    Started(Box<RunRecord>),
    /// The run failed before it started.
    Failed(Failure),
    /// The run was cancelled before it started, or deleted.
    Removed,
    /// The host is shutting down.
    ShuttingDown,
}

/// Waits until a run has started, or can no longer start.
///
/// # Errors
///
/// The errors of the store, and `unavailable` if the engine shuts down.
pub(crate) async fn wait_for_start(
    engine: &Engine,
    stopping: &watch::Receiver<bool>,
    run: &RunRef,
) -> Result<StartOutcome, Failure> {
    let mut stopping = stopping.clone();
    let record = tokio::select! {
        record = engine.wait_started(run) => record?,
        _ = stopping.wait_for(|stopping| *stopping) => return Ok(StartOutcome::ShuttingDown),
    };
    Ok(match record {
        None => StartOutcome::Removed,
        Some(record) if record.has_started() => StartOutcome::Started(Box::new(record)),
        Some(record) => record.failure.map_or(StartOutcome::Removed, StartOutcome::Failed),
    })
}

/// Waits for the end of a run. Returns its values with its pending interrupts, or its failure.
/// Returns `None` if the host shuts down before the end of the run.
pub(crate) async fn wait_for_result(
    engine: &Engine,
    stopping: &watch::Receiver<bool>,
    run: RunRef,
) -> Option<Value> {
    let end = wait_for_end(engine, stopping, run).await;
    let is_stopping = *stopping.borrow();
    match end {
        Ok(RunEnd::Values(values)) => Some(values),
        Ok(RunEnd::ShuttingDown) => None,
        // The shutdown is not a failure of the run.
        Err(error) if is_stopping && error.status() == StatusCode::SERVICE_UNAVAILABLE => None,
        Ok(RunEnd::Failed(failure)) => Some(json!({ ERROR: error_of(&failure) })),
        Err(error) => {
            Some(json!({ ERROR: { "error": code::INTERNAL, "message": error.detail() } }))
        }
    }
}

/// The result of waiting for the end of a run.
enum RunEnd {
    /// The values of the thread at the end of the run.
    Values(Value),
    /// The run failed before it started.
    Failed(Failure),
    /// The host is shutting down.
    ShuttingDown,
}

async fn wait_for_end(
    engine: &Engine,
    stopping: &watch::Receiver<bool>,
    run: RunRef,
) -> Result<RunEnd, ApiError> {
    let thread = run.thread.clone();
    let ended = match wait_for_start(engine, stopping, &run).await? {
        // If the run ends within the grace period of a shutdown, the client still gets the
        // response.
        StartOutcome::Started(_) => engine.wait(&run).await?,
        StartOutcome::Failed(failure) => return Ok(RunEnd::Failed(failure)),
        StartOutcome::ShuttingDown => return Ok(RunEnd::ShuttingDown),
        StartOutcome::Removed => {
            let view = engine.thread(&thread).await?;
            let state = view.map(|view| view.state).unwrap_or_default();
            EndedRun { run, outcome: RunOutcome::Cancelled, state }
        }
    };
    let head = engine.ports().store.thread(&thread).await?;
    let Some(head) = head else { return Ok(RunEnd::Values(ended.state)) };
    engine.load_code(&head.record).await;
    Ok(RunEnd::Values(run_values(&view::thread_info(engine, &head.record), &ended)))
}
