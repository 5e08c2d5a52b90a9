//! Threads: make, read, change, delete, copy.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use wattle_graph::id::ThreadId;
use wattle_run::call::runs::{RunRef, Runs as _};
use wattle_run::engine::blank::{NewThread, UpdateThread};
use wattle_run::ports::memory::MemoryScope;
use wattle_run::ports::store::{PruneStrategy, ThreadRecord, ThreadStatus, ThreadTtl};

use crate::agents::Agents;
use crate::caller::{Body, Caller, Place, uuid};
use crate::doc::run::shelf;
use crate::fault::Fault;
use crate::queue::drop_waiting;
use crate::route::crons::forget_of_thread;
use crate::route::state::lived;
use crate::view;
use crate::webhooks::unbook;
use crate::wire::request::{IfExists, ThreadCreate, ThreadPatch, ThreadPrune, TtlWish};
use crate::wire::shape::Thread;

/// Makes a thread.
pub(super) async fn create(
    State(agents): State<Agents>,
    caller: Caller,
    Body(request): Body<ThreadCreate>,
) -> Result<Json<Thread>, Fault> {
    let id = request.thread_id.as_deref();
    if let Some(id) = id
        && let Some(record) = caller.find_thread(&agents, id).await?
    {
        return match request.if_exists.unwrap_or_default() {
            IfExists::DoNothing => Ok(Json(view::thread(&agents, &record).await?)),
            IfExists::Raise => Err(Fault::conflict(format!("there is a thread `{id}` already"))),
        };
    }
    let new = NewThread {
        thread: id.map(|id| parse(&uuid("thread", id)?.to_string())).transpose()?,
        tenant: caller.tenant.clone(),
        metadata: request.metadata.unwrap_or_default().into_iter().collect(),
        ttl: request.ttl.map(ttl).transpose()?,
        created_ms: None,
    };
    let record = agents.engine().create_thread(new).await?;
    let steps = request.supersteps.unwrap_or_default();
    if steps.is_empty() {
        return Ok(Json(view::thread(&agents, &record).await?));
    }
    if let Err(fault) = lived(&agents, &record, steps).await {
        agents.engine().delete_thread(&record.id).await?;
        return Err(fault);
    }
    let record = caller.thread(&agents, record.id.as_str()).await?;
    Ok(Json(view::thread(&agents, &record).await?))
}

/// Reads a thread.
pub(super) async fn get(
    State(agents): State<Agents>,
    caller: Caller,
    Place(id): Place<String>,
) -> Result<Json<Thread>, Fault> {
    let record = caller.thread(&agents, &id).await?;
    Ok(Json(view::thread(&agents, &record).await?))
}

/// Changes facts of a thread.
pub(super) async fn update(
    State(agents): State<Agents>,
    caller: Caller,
    Place(id): Place<String>,
    headers: HeaderMap,
    Body(request): Body<ThreadPatch>,
) -> Result<Response, Fault> {
    let record = caller.thread(&agents, &id).await?;
    let update = UpdateThread {
        thread: record.id,
        tenant: record.tenant,
        metadata: request.metadata.unwrap_or_default().into_iter().collect(),
        ttl: request.ttl.map(ttl).transpose()?,
    };
    let record = agents.engine().update_thread(update).await?;
    if headers.get("prefer").is_some_and(|prefer| prefer == "return=minimal") {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(Json(view::thread(&agents, &record).await?).into_response())
}

/// Deletes a thread with its runs. Those at work are cancelled.
pub(super) async fn delete(
    State(agents): State<Agents>,
    caller: Caller,
    Place(id): Place<String>,
) -> Result<StatusCode, Fault> {
    let record = caller.thread(&agents, &id).await?;
    remove(&agents, record).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Deletes a thread with its runs. Those at work are cancelled.
pub(super) async fn remove(agents: &Agents, record: ThreadRecord) -> Result<(), Fault> {
    // Nothing begins on it meanwhile, and it is looked at once that is so.
    let _turnstile = agents.queue().enter(&record.id).await;
    let head = agents.ports().store.thread(&record.id).await?;
    let ThreadRecord { id, run, status, tenant, .. } = head.map_or(record, |head| head.record);
    drop_waiting(agents, &id, None, true).await?;
    if let (ThreadStatus::Running, Some(run)) = (status, run) {
        unbook(agents, &run).await?;
        agents.engine().cancel(&RunRef { thread: id.clone(), run }).await?;
    }
    agents.engine().delete_thread(&id).await?;
    forget_of_thread(agents, tenant.as_ref(), id.as_str()).await?;
    shelf(agents.ports(), MemoryScope::Host(tenant), &id).clear().await?;
    Ok(())
}

/// Copies a thread with its past.
pub(super) async fn copy(
    State(agents): State<Agents>,
    caller: Caller,
    Place(id): Place<String>,
) -> Result<Json<Thread>, Fault> {
    let record = caller.thread(&agents, &id).await?;
    let copy = agents.engine().copy_thread(&record.id, None).await?;
    let record = caller.thread(&agents, copy.as_str()).await?;
    Ok(Json(view::thread(&agents, &record).await?))
}

/// Takes the past of several threads away, or all of them.
pub(super) async fn prune(
    State(agents): State<Agents>,
    caller: Caller,
    Body(request): Body<ThreadPrune>,
) -> Result<Json<Value>, Fault> {
    let keeps = match request.strategy.as_deref() {
        None | Some("delete") => false,
        Some("keep_latest") => true,
        Some(other) => {
            let text = format!("`strategy` is `delete` or `keep_latest`, not `{other}`");
            return Err(Fault::unprocessable(text));
        }
    };
    let mut pruned = 0;
    for id in &request.thread_ids {
        let Some(record) = caller.find_thread(&agents, id).await? else { continue };
        if keeps {
            agents.engine().prune(&record.id, PruneStrategy::KeepLatest).await?;
        } else {
            remove(&agents, record).await?;
        }
        pruned += 1;
    }
    Ok(Json(json!({ "pruned_count": pruned })))
}

fn parse(id: &str) -> Result<ThreadId, Fault> {
    ThreadId::new(id).map_err(|error| Fault::unprocessable(error.to_string()))
}

fn ttl(wish: TtlWish) -> Result<ThreadTtl, Fault> {
    let read = wish.ttl().read();
    read.ok_or_else(|| Fault::unprocessable("`ttl` must be minutes, zero or more"))
}
