//! Threads: create, read, change, delete, copy and prune.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures::FutureExt as _;
use serde_json::{Value, json};
use tokio::sync::watch;
use wattle_api::detached;
use wattle_api::response::Json;
use wattle_graph::id::ThreadId;
use wattle_run::engine::Engine;
use wattle_run::engine::threads::NewThread;
use wattle_run::hostcall::runs::{RunService as _, UpdateThread};
use wattle_run::ports::store::{PruneStrategy, ThreadRecord, ThreadTtl};

use crate::cancel_run;
use crate::error::ApiError;
use crate::extractors::{Caller, IsOperator, JsonBody, PathParams, parse_thread_id, parse_uuid};
use crate::records::legacy;
use crate::route::crons::delete_crons_of_thread;
use crate::route::state::write_history;
use crate::unknown_keys::{IgnoredKeys, UnknownKeys};
use crate::view;
use crate::wire::request::{IfExists, ThreadCreate, ThreadPatch, ThreadPrune, TtlInput};
use crate::wire::response::Thread;
use crate::wire::schemas::{ErrorDocument, Pruned};

/// Maximum number of threads in a request to prune threads, because the request may delete every
/// named thread.
const MAX_PRUNED_THREADS: usize = 1_000;

/// Creates a thread.
#[utoipa::path(post, path = "/threads", operation_id = "agent_create_thread", tag = "agent-threads",
    request_body = ThreadCreate,
    responses(
        (status = 200, body = Thread,
            headers(("X-Wattle-Ignored-Keys" = String, description = "keys of `supersteps` that name no channel and were ignored, form-encoded and separated by commas; missing if there are none"))),
        (status = 400, body = ErrorDocument),
        (status = 409, body = ErrorDocument)))]
pub(super) async fn create(
    State(engine): State<Engine>,
    State(stopping): State<watch::Receiver<bool>>,
    State(unknown_keys): State<UnknownKeys>,
    caller: Caller,
    JsonBody(request): JsonBody<ThreadCreate>,
) -> Result<(HeaderMap, Json<Thread>), ApiError> {
    let future = async move {
        let (record, ignored) =
            create_with_history(&engine, unknown_keys, &caller, request).await?;
        Ok((ignored.headers(), Json(view::thread(&engine, &record).await?)))
    };
    detached::run(stopping, future.boxed()).await.unwrap_or_else(ApiError::panicked)
}

/// Creates a thread with its history. Returns the keys of the history that were ignored.
async fn create_with_history(
    engine: &Engine,
    unknown_keys: UnknownKeys,
    caller: &Caller,
    request: ThreadCreate,
) -> Result<(ThreadRecord, IgnoredKeys), ApiError> {
    let none_ignored = IgnoredKeys::default();
    let id = request.thread_id.as_deref();
    let if_exists = request.if_exists.unwrap_or_default();
    if let Some(id) = id
        && let Some(record) = caller.find_thread(engine, id).await?
    {
        return match if_exists {
            IfExists::DoNothing => Ok((record, none_ignored)),
            IfExists::Raise => Err(ApiError::conflict(format!("thread `{id}` already exists"))),
        };
    }
    let new = NewThread {
        thread: id.map(|id| parse_thread_id(&parse_uuid("thread", id)?.to_string())).transpose()?,
        tenant: caller.tenant.clone(),
        metadata: request.metadata.unwrap_or_default().into_iter().collect(),
        ttl: request.ttl.map(parse_ttl).transpose()?,
        created_ms: None,
        requested_graph: None,
    };
    let record = match (engine.create_thread(new).await, id) {
        (Ok(record), _) => record,
        // Another request has created the thread meanwhile.
        (Err(failure), Some(id)) if if_exists == IfExists::DoNothing => {
            let known = caller.find_thread(engine, id).await?;
            return known.map(|record| (record, none_ignored)).ok_or_else(|| failure.into());
        }
        (Err(failure), _) => return Err(failure.into()),
    };
    let steps = request.supersteps.unwrap_or_default();
    if steps.is_empty() {
        return Ok((record, none_ignored));
    }
    match write_history(engine, unknown_keys, caller, &record, steps).await {
        Ok(ignored) => Ok((caller.thread(engine, record.id.as_str()).await?, ignored)),
        Err(error) => {
            engine.delete_thread(&record.id).await?;
            Err(error)
        }
    }
}

/// Reads a thread.
#[utoipa::path(get, path = "/threads/{id}",
    extensions(("x-wattle-access" = json!({ "share": "control" }))),
    operation_id = "agent_get_thread", tag = "agent-threads",
    params(("id" = String, Path, description = "id of the thread")),
    responses((status = 200, body = Thread)))]
pub(super) async fn get(
    State(engine): State<Engine>,
    caller: Caller,
    PathParams(id): PathParams<String>,
) -> Result<Json<Thread>, ApiError> {
    let record = caller.thread(&engine, &id).await?;
    Ok(Json(view::thread(&engine, &record).await?))
}

/// Changes the metadata or the TTL of a thread.
#[utoipa::path(patch, path = "/threads/{id}",
    operation_id = "agent_update_thread", tag = "agent-threads",
    params(
        ("id" = String, Path, description = "id of the thread"),
        ("Prefer" = Option<String>, Header, description = "`return=minimal` for a response without a body")),
    request_body = ThreadPatch,
    responses(
        (status = 200, body = Thread),
        (status = 204),
        (status = 409, body = ErrorDocument)))]
pub(super) async fn update(
    State(engine): State<Engine>,
    State(stopping): State<watch::Receiver<bool>>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    headers: HeaderMap,
    JsonBody(request): JsonBody<ThreadPatch>,
) -> Result<Response, ApiError> {
    let record = caller.thread(&engine, &id).await?;
    let update = UpdateThread {
        thread: record.id,
        app: None,
        tenant: record.tenant,
        metadata: request.metadata.unwrap_or_default().into_iter().collect(),
        ttl: request.ttl.map(parse_ttl).transpose()?,
    };
    let own = engine.clone();
    let future = async move { Ok(own.update_thread(update).await?) };
    let record =
        detached::run(stopping, future.boxed()).await.unwrap_or_else(ApiError::panicked)?;
    if headers.get("prefer").is_some_and(|prefer| prefer == "return=minimal") {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(Json(view::thread(&engine, &record).await?).into_response())
}

/// Deletes a thread with its runs. Pending and running runs are cancelled. Only the operator can
/// delete a damaged thread.
#[utoipa::path(delete, path = "/threads/{id}",
    extensions(("x-wattle-access" = json!({ "share": "control" }))),
    operation_id = "agent_delete_thread", tag = "agent-threads",
    params(("id" = String, Path, description = "id of the thread")),
    responses(
        (status = 204),
        (status = 409, body = ErrorDocument)))]
pub(super) async fn delete(
    State(engine): State<Engine>,
    State(stopping): State<watch::Receiver<bool>>,
    caller: Result<Caller, ApiError>,
    IsOperator(is_operator): IsOperator,
    PathParams(id): PathParams<String>,
) -> Result<StatusCode, ApiError> {
    if is_operator && engine.remove_damaged(&parse_thread_id(&id)?).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    let found = caller?.find_stored_thread(&engine, &id).await?;
    let record = found.ok_or_else(|| ApiError::missing("thread", &id))?;
    delete_thread(&engine, &stopping, record.id, record.tenant).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Deletes a thread of a tenant with its runs. Pending and running runs are cancelled.
pub(super) async fn delete_thread(
    engine: &Engine,
    stopping: &watch::Receiver<bool>,
    thread: ThreadId,
    tenant: Option<String>,
) -> Result<(), ApiError> {
    let own = engine.clone();
    let future = async move {
        cancel_run::delete_thread(&own, &thread).await?;
        legacy::delete_runs(own.ports(), tenant.as_ref(), &thread).await?;
        delete_crons_of_thread(&own, tenant.as_ref(), thread.as_str()).await
    };
    detached::run(stopping.clone(), future.boxed()).await.unwrap_or_else(ApiError::panicked)
}

/// Copies a thread with its history.
#[utoipa::path(post, path = "/threads/{id}/copy",
    operation_id = "agent_copy_thread", tag = "agent-threads",
    params(("id" = String, Path, description = "id of the thread")),
    responses(
        (status = 200, body = Thread),
        (status = 409, body = ErrorDocument)))]
pub(super) async fn copy(
    State(engine): State<Engine>,
    State(stopping): State<watch::Receiver<bool>>,
    caller: Caller,
    PathParams(id): PathParams<String>,
) -> Result<Json<Thread>, ApiError> {
    let record = caller.thread(&engine, &id).await?;
    let own = engine.clone();
    let future = async move { Ok(own.copy_thread(&record.id, None).await?) };
    let copy = detached::run(stopping, future.boxed()).await.unwrap_or_else(ApiError::panicked)?;
    let record = caller.thread(&engine, copy.as_str()).await?;
    Ok(Json(view::thread(&engine, &record).await?))
}

/// Deletes several threads, or all but their newest states.
#[utoipa::path(post, path = "/threads/prune",
    operation_id = "agent_prune_threads", tag = "agent-threads",
    request_body = ThreadPrune,
    responses(
        (status = 200, body = Pruned),
        (status = 409, body = ErrorDocument)))]
pub(super) async fn prune(
    State(engine): State<Engine>,
    State(stopping): State<watch::Receiver<bool>>,
    caller: Caller,
    JsonBody(request): JsonBody<ThreadPrune>,
) -> Result<Json<Value>, ApiError> {
    let keeps_latest = match request.strategy.as_deref() {
        None | Some("delete") => false,
        Some("keep_latest") => true,
        Some(other) => {
            let text = format!("`strategy` must be `delete` or `keep_latest`, not `{other}`");
            return Err(ApiError::unprocessable(text));
        }
    };
    let count = request.thread_ids.len();
    if count > MAX_PRUNED_THREADS {
        let text = format!("a request may name at most {MAX_PRUNED_THREADS} threads, not {count}");
        return Err(ApiError::unprocessable(text));
    }
    // Look up all threads before any thread is changed.
    let mut found = BTreeMap::new();
    for id in &request.thread_ids {
        let known = if keeps_latest {
            caller.find_thread(&engine, id).await?
        } else {
            caller.find_stored_thread(&engine, id).await?
        };
        found.extend(known.map(|record| (record.id, record.tenant)));
    }
    let pruned = found.len();
    for (thread, tenant) in found {
        if keeps_latest {
            let own = engine.clone();
            let keep = PruneStrategy::KeepLatest;
            let future = async move { Ok(own.prune(&thread, keep).await?) };
            detached::run(stopping.clone(), future.boxed())
                .await
                .unwrap_or_else(ApiError::panicked)?;
        } else {
            delete_thread(&engine, &stopping, thread, tenant).await?;
        }
    }
    Ok(Json(json!({ "pruned_count": pruned })))
}

fn parse_ttl(input: TtlInput) -> Result<ThreadTtl, ApiError> {
    let ttl = input.ttl().parse();
    ttl.ok_or_else(|| ApiError::unprocessable("`ttl` must be a number of minutes, zero or more"))
}
