//! Pending runs of all threads.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::Deserialize;
use utoipa::IntoParams;
use wattle_graph::event::RunStatus;
use wattle_graph::id::AppName;
use wattle_run::engine::Engine;
use wattle_run::ports::Store;
use wattle_run::ports::store::{PendingQuery, PendingRun, StoreError};

use crate::document::Page;
use crate::document::queue::QueuedRunDocument;
use crate::native::list_scope::ListScope;
use crate::native::thread_filter::parse_cursor;
use crate::native::threads::invalid_query;
use crate::problem::{Problem, ProblemDocument};
use crate::response::Json;

/// Default number of pending runs that one request examines.
const DEFAULT_QUEUED_RUNS: usize = 50;

/// Maximum number of pending runs that one request examines. The record and the thread of each of
/// them are read, one after the other.
const MAX_QUEUED_RUNS: usize = 100;

/// Selects pending runs.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct QueueParams {
    /// Only runs of this app.
    #[param(value_type = Option<String>)]
    app: Option<AppName>,
    /// Only runs of this tenant; `*` for those of all tenants. For the operator; other requests can
    /// name their own tenant only.
    tenant: Option<String>,
    /// Maximum number of pending runs that are examined, up to 100; 50 by default.
    limit: Option<usize>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Lists pending runs in the order of their requests. A page may be short or even empty and have a
/// `next_cursor`. A run starts when it is due, its thread has no active run and a host has a free
/// slot.
#[utoipa::path(get, path = "/api/v1/queue",
    extensions(("x-wattle-access" = json!({ "scope": "admin", "share": "control" }))), tag = "host",
    params(QueueParams),
    responses(
        (status = 200, body = Page<QueuedRunDocument>),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn list_queue(
    State(engine): State<Engine>,
    scope: ListScope,
    params: Result<Query<QueueParams>, QueryRejection>,
) -> Result<Json<Page<QueuedRunDocument>>, Problem> {
    let Query(QueueParams { app, tenant, limit, cursor }) = params.map_err(invalid_query)?;
    let tenant = scope.tenant(tenant.as_deref())?;
    let limit = limit.unwrap_or(DEFAULT_QUEUED_RUNS).clamp(1, MAX_QUEUED_RUNS);
    let after = parse_cursor(cursor.as_deref(), |text| text.parse().ok())?;
    let store = engine.ports().store.as_ref();
    let query = PendingQuery { after, limit, ..PendingQuery::default() };
    let pending = store.pending(&query).await?;
    let last = pending.last().filter(|_| pending.len() == limit);
    let next = last.map(|last| last.position);
    let mut items = Vec::new();
    for pending in &pending {
        let run = read_run(store, pending, tenant.as_deref()).await?;
        items.extend(run.filter(|run| app.as_ref().is_none_or(|app| app.as_str() == run.app)));
    }
    Ok(Json(Page::by_cursor(items, next)))
}

/// Reads a pending run of a tenant, or of any tenant. Returns `None` for a run of another tenant, a
/// run that has left the queue, and a run whose thread or record is damaged.
async fn read_run(
    store: &dyn Store,
    pending: &PendingRun,
    tenant: Option<&str>,
) -> Result<Option<QueuedRunDocument>, StoreError> {
    let Some(thread) = readable(store.thread(&pending.thread).await)? else { return Ok(None) };
    let thread = thread.record;
    if tenant.is_some() && thread.tenant.as_deref() != tenant {
        return Ok(None);
    }
    let Some(run) = readable(store.run(&pending.run).await)? else { return Ok(None) };
    Ok(QueuedRunDocument::new(&run, thread).filter(|_| run.status == RunStatus::Pending))
}

/// Returns an item; `None` if its stored data is damaged, so that the others are listed.
fn readable<T>(read: Result<Option<T>, StoreError>) -> Result<Option<T>, StoreError> {
    match read {
        Err(StoreError::Corrupt { .. }) => Ok(None),
        read => read,
    }
}
