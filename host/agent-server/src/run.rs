//! A run with its request and its record, and the result of a run.

use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::RunId;
use wattle_project::agent_server::document::ERROR;
use wattle_project::agent_server::failure::error_of;
use wattle_project::agent_server::id::assistant_uuid;
use wattle_run::hostcall::runs::{EndedRun, Multitask, RunOutcome, RunRef, RunService as _};
use wattle_run::ports::store::{RunRecord, ThreadRecord};

use crate::asked::run::{AskedRun, Terms};
use crate::error::ApiError;
use crate::graphs;
use crate::records::{legacy, webhook};
use crate::state::AgentServer;
use crate::view;
use crate::wire::shape::{Run, RunStatus, outcome};

/// A run of a thread.
#[derive(Clone)]
pub(crate) struct KnownRun {
    /// The run as the client requested it.
    pub(crate) asked: AskedRun,
    /// The record of the engine.
    pub(crate) record: RunRecord,
}

impl KnownRun {
    /// Finds a run of a thread by its id.
    ///
    /// # Errors
    ///
    /// 404 if the thread has no such run.
    pub(crate) async fn find(
        server: &AgentServer,
        thread: &ThreadRecord,
        id: &str,
    ) -> Result<Self, ApiError> {
        let run = RunId::new(id).map_err(|error| ApiError::unprocessable(error.to_string()))?;
        let record = server.ports().store.run(&run).await?;
        let Some(record) = record.filter(|record| record.thread == thread.id) else {
            crate::extractors::parse_uuid("run", id)?;
            return Err(ApiError::missing("run", id));
        };
        Self::of(server, thread, record).await
    }

    /// Returns the run of a record, with its request.
    pub(crate) async fn of(
        server: &AgentServer,
        thread: &ThreadRecord,
        record: RunRecord,
    ) -> Result<Self, ApiError> {
        let asked = match AskedRun::of(&record, thread) {
            // Hosts of older versions stored the request in the memory.
            None if record.created_ms.is_none() => {
                let (ports, tenant) = (server.ports(), thread.tenant.as_ref());
                legacy::find_run(ports, tenant, &thread.id, &record.id).await?
            }
            asked => asked,
        };
        let mut asked = asked.unwrap_or_else(|| of_other_api(server, thread, &record));
        if asked.terms.kwargs.get("webhook").is_some_and(Value::is_string) {
            let problem = webhook::delivery_error(server.ports(), &record.id).await?;
            asked
                .terms
                .kwargs
                .extend(problem.map(|why| (webhook::WEBHOOK_ERROR.to_owned(), why.into())));
        }
        Ok(Self { asked, record })
    }

    /// Describes the run for clients, as JSON.
    pub(crate) fn to_body(&self) -> Run {
        self.asked.to_body(&self.record)
    }

    /// Returns whether the run has ended.
    pub(crate) fn is_over(&self) -> bool {
        RunStatus::of(&self.record).is_over()
    }
}

/// Describes a run that another API created as if a client of this API had requested it.
fn of_other_api(server: &AgentServer, thread: &ThreadRecord, record: &RunRecord) -> AskedRun {
    let graph_id = graphs::graph_id(server.engine().catalog(), &thread.app, &thread.graph);
    AskedRun {
        run: record.id.clone(),
        thread: record.thread.clone(),
        tenant: thread.tenant.clone(),
        app: thread.app.clone(),
        graph: thread.graph.clone(),
        created_ms: record.created_ms(),
        due_ms: record.due_ms(),
        terms: Terms {
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
pub(crate) enum Turn {
    /// The run has started.
    Begun(Box<RunRecord>),
    /// The run failed before it started.
    Failed(Failure),
    /// The run was cancelled before it started, or deleted.
    Gone,
    /// The host is shutting down.
    Stopping,
}

/// Waits until a run has started, or can no longer start.
///
/// # Errors
///
/// Those of the store, and `unavailable` if the engine shuts down.
pub(crate) async fn turn(server: &AgentServer, run: &RunRef) -> Result<Turn, Failure> {
    let mut stopping = server.api().stopping.clone();
    let record = tokio::select! {
        record = server.engine().wait_started(run) => record?,
        _ = stopping.wait_for(|stopping| *stopping) => return Ok(Turn::Stopping),
    };
    Ok(match record {
        None => Turn::Gone,
        Some(record) if record.has_started() => Turn::Begun(Box::new(record)),
        Some(record) => record.failure.map_or(Turn::Gone, Turn::Failed),
    })
}

/// Waits for the end of a run. Returns its values with its pending interrupts, or its failure.
/// Returns `None` if the host shuts down earlier.
pub(crate) async fn ended(server: &AgentServer, run: RunRef) -> Option<Value> {
    let end = end(server, run).await;
    let is_stopping = *server.api().stopping.borrow();
    match end {
        Ok(End::Values(values)) => Some(values),
        Ok(End::Stopping) => None,
        // The shutdown is not a failure of the run.
        Err(error) if is_stopping && error.status() == StatusCode::SERVICE_UNAVAILABLE => None,
        Ok(End::Failed(failure)) => Some(json!({ ERROR: error_of(&failure) })),
        Err(error) => {
            Some(json!({ ERROR: { "error": code::INTERNAL, "message": error.detail() } }))
        }
    }
}

/// The result of waiting for the end of a run.
enum End {
    /// The values of the thread at the end of the run.
    Values(Value),
    /// The run failed before it started.
    Failed(Failure),
    /// The host is shutting down.
    Stopping,
}

async fn end(server: &AgentServer, run: RunRef) -> Result<End, ApiError> {
    let thread = run.thread.clone();
    let ended = match turn(server, &run).await? {
        // A run that ends within the grace period of a shutdown still gets its response.
        Turn::Begun(_) => server.engine().wait(&run).await?,
        Turn::Failed(failure) => return Ok(End::Failed(failure)),
        Turn::Stopping => return Ok(End::Stopping),
        Turn::Gone => {
            let view = server.engine().thread(&thread).await?;
            let state = view.map(|view| view.state).unwrap_or_default();
            EndedRun { run, outcome: RunOutcome::Cancelled, state }
        }
    };
    let head = server.ports().store.thread(&thread).await?;
    let Some(head) = head else { return Ok(End::Values(ended.state)) };
    server.engine().load_code(&head.record).await;
    Ok(End::Values(outcome(&view::thread_info(server, &head.record), &ended)))
}
