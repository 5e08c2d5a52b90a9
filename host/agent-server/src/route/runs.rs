//! Runs of a thread: ask for one, follow it, wait for it, read it, delete it.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;
use wattle_run::ports::store::ThreadRecord;

use crate::agents::Agents;
use crate::answer::{self, placed};
use crate::asked;
use crate::caller::{Body, Caller, Place};
use crate::doc::run::RunDoc;
use crate::fault::Fault;
use crate::order;
use crate::presence::Presence;
use crate::query::Query;
use crate::queue::remove;
use crate::route::search::PAGE;
use crate::run::KnownRun;
use crate::stream::{self, Wish};
use crate::view;
use crate::wire::id::EventId;
use crate::wire::request::{Disconnect, Mode, Modes, RunCreate};
use crate::wire::shape::Run;

/// Most runs of one answer.
const LARGEST_PAGE: usize = 1_000;

/// Fields that `select` knows.
const FIELDS: &[&str] = &[
    "run_id",
    "thread_id",
    "assistant_id",
    "created_at",
    "updated_at",
    "status",
    "metadata",
    "kwargs",
    "multitask_strategy",
];

/// Asks for a run and does not wait.
pub(super) async fn create(
    State(agents): State<Agents>,
    caller: Caller,
    Place(id): Place<String>,
    Body(request): Body<RunCreate>,
) -> Result<Response, Fault> {
    let (_, doc) = begin(&agents, &caller, &id, &request).await?;
    let run = KnownRun::find(&agents, &record(&agents, &doc).await?, doc.run.as_str()).await?;
    let place = place(&doc);
    Ok(placed(Json(run.doc.shape(run.record.as_ref())).into_response(), &place, None))
}

/// Asks for a run and answers with what it leads to.
pub(super) async fn wait(
    State(agents): State<Agents>,
    caller: Caller,
    Place(id): Place<String>,
    Body(request): Body<RunCreate>,
) -> Result<Response, Fault> {
    let (_, doc) = begin(&agents, &caller, &id, &request).await?;
    let (place, presence) = (place(&doc), presence(&agents, &doc, &request));
    Ok(placed(answer::wait(&agents, doc, presence), &place, Some("join")))
}

/// Asks for a run and answers with its stream.
pub(super) async fn stream(
    State(agents): State<Agents>,
    caller: Caller,
    Place(id): Place<String>,
    Body(request): Body<RunCreate>,
) -> Result<Response, Fault> {
    let (_, doc) = begin(&agents, &caller, &id, &request).await?;
    let thread = record(&agents, &doc).await?;
    let place = place(&doc);
    let response = streamed(&agents, &thread, doc, &request)?;
    Ok(placed(response, &place, Some("stream")))
}

/// The stream of a run that was just asked for.
pub(super) fn streamed(
    agents: &Agents,
    thread: &ThreadRecord,
    doc: RunDoc,
    request: &RunCreate,
) -> Result<Response, Fault> {
    let wish = Wish {
        modes: Modes::read(request.stream_mode.as_ref())?,
        subgraphs: request.stream_subgraphs.unwrap_or(false),
        after: 0,
    };
    let presence = presence(agents, &doc, request);
    Ok(stream::answer(agents, thread, doc, wish, presence))
}

/// The client for which a run works, if its leaving ends it.
pub(super) fn presence(agents: &Agents, doc: &RunDoc, request: &RunCreate) -> Option<Presence> {
    let cancels = request.on_disconnect.unwrap_or_default() == Disconnect::Cancel;
    cancels.then(|| Presence::new(agents, &doc.thread, &doc.run))
}

async fn begin(
    agents: &Agents,
    caller: &Caller,
    id: &str,
    request: &RunCreate,
) -> Result<(ThreadRecord, RunDoc), Fault> {
    order::on_thread(agents, caller, id, asked::new_run()?, request).await
}

/// The thread of a run as it is since the run was asked for.
pub(super) async fn record(agents: &Agents, doc: &RunDoc) -> Result<ThreadRecord, Fault> {
    let head = agents.ports().store.thread(&doc.thread).await?;
    let head = head.ok_or_else(|| Fault::missing("thread", doc.thread.as_str()))?;
    Ok(head.record)
}

fn place(doc: &RunDoc) -> String {
    format!("/threads/{}/runs/{}", doc.thread, doc.run)
}

/// Lists the runs of a thread, the newest first.
pub(super) async fn list(
    State(agents): State<Agents>,
    caller: Caller,
    Place(id): Place<String>,
    query: Query,
) -> Result<Json<Vec<Value>>, Fault> {
    let thread = caller.thread(&agents, &id).await?;
    let all = KnownRun::all(&agents, &thread).await?;
    let mut runs: Vec<Run> = all.iter().map(|run| run.doc.shape(run.record.as_ref())).collect();
    if let Some(status) = query.text("status") {
        let status = serde_json::from_value(status.into())
            .map_err(|_| Fault::unprocessable(format!("`status` of runs is never `{status}`")))?;
        runs.retain(|run| run.status == status);
    }
    let offset = query.number("offset")?.unwrap_or(0);
    let limit = query.number("limit")?.unwrap_or(PAGE).clamp(1, LARGEST_PAGE);
    let fields = query.list("select");
    let shown = runs.iter().skip(offset).take(limit);
    let shown = shown.map(|run| view::select(run, Some(&fields), FIELDS));
    Ok(Json(shown.collect::<Result<_, _>>()?))
}

/// Reads a run.
pub(super) async fn get(
    State(agents): State<Agents>,
    caller: Caller,
    Place((id, run)): Place<(String, String)>,
) -> Result<Json<Run>, Fault> {
    let thread = caller.thread(&agents, &id).await?;
    let run = KnownRun::find(&agents, &thread, &run).await?;
    Ok(Json(run.doc.shape(run.record.as_ref())))
}

/// Takes a run away with what it did.
pub(super) async fn delete(
    State(agents): State<Agents>,
    caller: Caller,
    Place((id, run)): Place<(String, String)>,
) -> Result<StatusCode, Fault> {
    let thread = caller.thread(&agents, &id).await?;
    let run = KnownRun::find(&agents, &thread, &run).await?;
    remove(&agents, &thread.id, &run.doc.run).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Answers with what a run leads to.
pub(super) async fn join(
    State(agents): State<Agents>,
    caller: Caller,
    Place((id, run)): Place<(String, String)>,
    query: Query,
) -> Result<Response, Fault> {
    let thread = caller.thread(&agents, &id).await?;
    let run = KnownRun::find(&agents, &thread, &run).await?;
    joined(&agents, run, &query)
}

/// What a run leads to, and where that was asked for.
pub(super) fn joined(agents: &Agents, run: KnownRun, query: &Query) -> Result<Response, Fault> {
    let place = place(&run.doc);
    let presence = watching(agents, &run, query)?;
    Ok(placed(answer::wait(agents, run.doc, presence), &place, Some("join")))
}

fn watching(agents: &Agents, run: &KnownRun, query: &Query) -> Result<Option<Presence>, Fault> {
    let cancels = query.flag("cancel_on_disconnect")?;
    Ok(cancels.then(|| Presence::new(agents, &run.doc.thread, &run.doc.run)))
}

/// Answers with the stream of a run.
pub(super) async fn join_stream(
    State(agents): State<Agents>,
    caller: Caller,
    Place((id, run)): Place<(String, String)>,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, Fault> {
    let thread = caller.thread(&agents, &id).await?;
    let run = KnownRun::find(&agents, &thread, &run).await?;
    let place = place(&run.doc);
    let response = joined_stream(&agents, &thread, run, &query, &headers)?;
    Ok(placed(response, &place, Some(&query.again("stream"))))
}

/// The stream of a run from where the client knows it. A run that is over says nothing to a client
/// that does not say what it knows.
pub(super) fn joined_stream(
    agents: &Agents,
    thread: &ThreadRecord,
    run: KnownRun,
    query: &Query,
    headers: &HeaderMap,
) -> Result<Response, Fault> {
    let after = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let after = after.map(|id| {
        let number = EventId::number_of(id);
        number.ok_or_else(|| Fault::unprocessable(format!("`{id}` is no id of an event")))
    });
    let after = after.transpose()?;
    if after.is_none() && run.is_over() {
        return Ok(stream::nothing());
    }
    let wish = Wish {
        modes: modes(&run.doc, query)?,
        subgraphs: subgraphs(&run.doc),
        after: after.unwrap_or(0),
    };
    let presence = watching(agents, &run, query)?;
    Ok(stream::answer(agents, thread, run.doc, wish, presence))
}

/// What the client asks for, or else what was asked for with the run.
fn modes(doc: &RunDoc, query: &Query) -> Result<std::collections::BTreeSet<Mode>, Fault> {
    let wanted = query.list("stream_mode");
    if !wanted.is_empty() {
        return Ok(Modes::read(Some(&Modes::Many(wanted)))?);
    }
    let asked = doc.kwargs.get("stream_mode").cloned();
    let asked = asked.and_then(|asked| serde_json::from_value::<Modes>(asked).ok());
    Ok(Modes::read(asked.as_ref())?)
}

fn subgraphs(doc: &RunDoc) -> bool {
    doc.kwargs.get("subgraphs").and_then(Value::as_bool).unwrap_or(false)
}
